// What every core has: configuration, metrics, queues, fibers, admission, life cycle. One instance
// per core, made first and stopped last; services get it in their constructor.
#pragma once

#include "shards/runtime/admission.hh"
#include "shards/runtime/breakers.hh"
#include "shards/runtime/config_store.hh"
#include "shards/runtime/groups.hh"
#include "shards/runtime/lifecycle.hh"
#include "shards/runtime/mailbox.hh"
#include "shards/runtime/metrics.hh"
#include "shards/runtime/queue_registry.hh"
#include "shards/runtime/supervisor.hh"

#include <seastar/core/sharded.hh>

namespace tidepool {

// What core 0 prepares before any core starts.
struct runtime_seed {
    loaded_config configuration;
    scheduling_groups groups;
    hop_groups hops;
    std::chrono::steady_clock::time_point began;
    uint64_t random_seed;
};

class runtime : public ss::peering_sharded_service<runtime> {
public:
    explicit runtime(const runtime_seed&);

    runtime_metrics metrics;
    config_store conf;
    scheduling_groups groups;
    lifecycle life;
    queue_registry queues;
    admission admit;
    breaker_table breakers;
    supervisor fibers;
    random_source random;
    uint64_t requests_total = 0; // answered by this core's listeners

    // Where a mailbox of `capacity` credits travels; counts against the level's share.
    mailbox_hops hops(hop_level, unsigned capacity);

    // Once a second: how busy the core was, and whether queues are 9/10 full; 30 such seconds in a
    // row make the node not ready.
    void sample();
    double busy() const noexcept { return _busy; }

    ss::future<> stop() { return ss::make_ready_future<>(); }

private:
    hop_groups _hops;
    hop_budget _budget;
    unsigned _crowded_samples = 0;
    double _busy = 0;
    std::chrono::steady_clock::duration _busy_before{};
    std::chrono::steady_clock::duration _idle_before{};
};

// Puts a checked configuration in force on every core, or on none. On core 0.
ss::future<config_diff> reload(ss::sharded<runtime>&, const config& next);

} // namespace tidepool
