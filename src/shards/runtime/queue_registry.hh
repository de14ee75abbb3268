// Every queue of the product declares itself here: name, capacity, who fills and who empties it,
// what happens when it is full. docs/CONCURRENCY.md is printed from the declarations, the metrics
// and /v1/status from the counts.
#pragma once

#include "shards/base/ss.hh"

#include <boost/intrusive/list.hpp>
#include <cstdint>
#include <seastar/core/metrics_registration.hh>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tidepool {

enum class queue_kind : uint8_t { mailbox, local_queue, bus, latest_cell };
enum class overflow : uint8_t { reject_new, wait_with_deadline, drop_oldest, latest_wins };

std::string_view name(queue_kind) noexcept;
std::string_view name(overflow) noexcept;

// A declaration; static data of the folder that has the queue.
struct queue_spec {
    std::string_view name;
    queue_kind kind;
    std::string_view capacity; // a number, or the configuration key that holds it
    std::string_view producer;
    std::string_view consumer;
    overflow policy;
    std::string_view counted; // what is counted when it overflows
};

// What a queue counts on its core. Everything accepted ends as done, timed out, canceled, dropped
// or aborted.
struct queue_counts {
    uint64_t capacity = 0;
    uint64_t depth = 0;
    uint64_t accepted = 0;
    uint64_t done = 0;
    uint64_t refused = 0;   // never accepted: full
    uint64_t timed_out = 0; // waited for a place until its deadline
    uint64_t canceled = 0;  // never accepted: closed
    uint64_t dropped = 0;   // accepted, then pushed out by a newer one
    uint64_t aborted = 0;   // still in flight at the drain deadline
};

class queue_registry;

// A queue as the registry of its core sees it. Registers for its lifetime; two of a name on a core
// are a bug.
class registered_queue : public boost::intrusive::list_base_hook<> {
    queue_registry& _registry;
    ss::metrics::metric_groups _metrics;

public:
    const queue_spec& spec;
    queue_counts counts;

    registered_queue(const queue_spec&, uint64_t capacity, queue_registry&);
    ~registered_queue();
    registered_queue(const registered_queue&) = delete;
    registered_queue& operator=(const registered_queue&) = delete;
};

// One per core.
class queue_registry {
    boost::intrusive::list<registered_queue> _queues;
    friend class registered_queue;

public:
    const auto& queues() const noexcept { return _queues; }
    // Queues at or above nine tenths of their capacity.
    size_t crowded() const noexcept;
};

// docs/CONCURRENCY.md's table of the declarations.
std::string queue_table(std::span<const queue_spec* const>);

} // namespace tidepool
