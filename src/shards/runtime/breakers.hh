// The breakers of one core, by target, with their metric. A target's breaker lives on the core that
// owns the target.
#pragma once

#include "shards/base/breaker.hh"
#include "shards/runtime/owner.hh"

#include <map>
#include <seastar/core/metrics.hh>
#include <string>

namespace tidepool {

class breaker_table : public owned {
    struct row {
        breaker state;
        ss::metrics::metric_groups metrics;
        explicit row(breaker_policy policy) : state(policy) {}
    };
    std::map<std::string, row, std::less<>>
        _rows; // nodes are stable: metrics and callers point into them

public:
    // Targets come from configuration, never from clients, so the table is as long as the
    // configuration says.
    breaker& add(const std::string& target, breaker_policy policy) {
        assert_owner();
        auto [found, fresh] = _rows.try_emplace(target, policy);
        if (fresh) {
            publish(target, found->second);
        }
        return found->second.state;
    }

private:
    // One series a state, 1 for the one it is in: dashboards can draw and alert on each.
    static void publish(const std::string& target, row& r) {
        namespace sm = ss::metrics;
        for (const auto s :
            {breaker::state::closed, breaker::state::open, breaker::state::half_open}) {
            r.metrics.add_group("breaker",
                {sm::make_gauge("state",
                    [&r, s] {
                        return r.state.current(std::chrono::steady_clock::now()) == s ? 1 : 0;
                    },
                    sm::description("1 for the state the breaker is in"),
                    {sm::label("target")(target), sm::label("state")(std::string(name(s)))})});
        }
    }
};

} // namespace tidepool
