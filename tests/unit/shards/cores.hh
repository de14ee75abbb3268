// The runtime on every core of the test's reactor, for tests of what stands on it. Use inside a
// Seastar thread.
#pragma once

#include "seed.hh"
#include "shards/runtime/runtime.hh"

#include <seastar/core/thread.hh>

namespace tidepool::test {

class cores {
    static hop_groups& hops() {
        // Made once for the process: there are only so many service groups.
        static hop_groups groups = hop_groups::create().get();
        return groups;
    }

public:
    ss::sharded<runtime> all;

    explicit cores(config c = {}) {
        runtime_seed seed{.configuration = {.values = std::move(c), .origins = {}},
            .groups = {},
            .hops = hops(),
            .began = std::chrono::steady_clock::now(),
            .random_seed = run_seed()};
        all.start(std::cref(seed)).get();
    }
    ~cores() {
        all.invoke_on_all([](runtime& r) {
               return r.fibers.stop(deadline::in(std::chrono::seconds(5))).discard_result();
           })
            .get();
        all.stop().get();
    }
    runtime& here() { return all.local(); }
};

inline ss::shard_id last_core() {
    return ss::smp::count - 1;
}

} // namespace tidepool::test
