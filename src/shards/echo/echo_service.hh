// The example service, to copy from: a key belongs to one core, reads and writes go there through a
// mailbox, and what was written is announced to every core's event bus.
//
// Which core: any core may call get/put/erase; they run on owner_of(key). The state is touched by
// its own core only. What may overlap: calls for different keys, and for one key in the order in
// which they reach the owner. How it stops: close() drains the mailboxes up to the drain deadline,
// stop() waits for the memory to come home.
#pragma once

#include "shards/echo/echo_core.hh"
#include "shards/runtime/event_bus.hh"
#include "shards/runtime/runtime.hh"

#include <seastar/core/sharded.hh>
#include <span>

namespace tidepool {

struct echo_event {
    std::string key;
    uint64_t version;
};

// A value, and the core that answered.
struct echo_answer {
    echo_value value;
    ss::shard_id core;
};

class echo_service : public ss::peering_sharded_service<echo_service>, public owned {
public:
    using event_subscription = event_bus<echo_event>::subscription;

    echo_service(ss::sharded<runtime>&, ss::sharded<echo_service>&);

    // From any core. The answer's memory is the owner's: the loan gives it back.
    ss::future<result<loan<echo_answer>>> get(std::string key, deadline);
    ss::future<result<uint64_t>> put(std::string key, std::string value, deadline);
    ss::future<result<void>> erase(std::string key, deadline);

    event_bus<echo_event>& events() noexcept { return _events; }

    ss::future<> close(deadline drain);
    ss::future<bool> drained(deadline);
    ss::future<> stop() { return ss::make_ready_future<>(); }

    static std::span<const queue_spec* const> queues();

private:
    runtime& _runtime;
    echo_core _core;
    mailbox<echo_service> _calls;
    mailbox<echo_service> _announcements;
    event_bus<echo_event> _events;

    // On the owner.
    result<loan<echo_answer>> local_get(std::string_view key) const;
    result<uint64_t> local_put(std::string_view key, std::string_view value);
    // After the answer: best effort, a full mailbox drops the event and counts it.
    void announce(const echo_event&);
};

} // namespace tidepool
