// Keeps the background fibers of one core: starts them, restarts them with jittered backoff, stops
// them, and knows the name of every one that is alive. Nothing runs in the background of a node
// that is not spawned here.
//
// How it stops: stop() requests the abort source that every fiber was given, waits until the
// deadline, and counts (and names) those that did not end. A fiber that failed too often makes the
// node fail closed through on_fatal.
#pragma once

#include "shards/base/backoff.hh"
#include "shards/runtime/deadline.hh"
#include "shards/runtime/metrics.hh"
#include "shards/runtime/owner.hh"

#include <functional>
#include <list>
#include <seastar/core/abort_source.hh>
#include <seastar/core/condition-variable.hh>
#include <string>
#include <vector>

namespace tidepool {

enum class restart : uint8_t {
    never,      // a return is the end, a failure is fatal
    on_failure, // a return is the end, a failure means another try
    always,     // a return is unexpected and means another try, too
};

struct fiber_info {
    std::string kind;
    std::string name;
    unsigned restarts = 0;
};

class supervisor : public owned {
public:
    using body = std::function<ss::future<>(ss::abort_source&)>;
    using fatal_handler = std::function<void(std::string)>;

    supervisor(runtime_metrics& metrics, uint64_t seed) : _metrics(metrics), _random(seed) {}

    void on_fatal(fatal_handler handler) { _on_fatal = std::move(handler); }
    void spawn(std::string kind, std::string name, restart, backoff_policy, body);

    // Ends all fibers; the names of those still alive at the deadline, which were counted as
    // aborted.
    ss::future<std::vector<std::string>> stop(deadline);

    const std::list<fiber_info>& alive() const noexcept { return _alive; }
    ss::abort_source& stopping() noexcept { return _stop; }

private:
    struct plan {
        restart mode;
        backoff_policy policy;
        body run;
    };

    runtime_metrics& _metrics;
    random_source _random;
    fatal_handler _on_fatal;
    ss::abort_source _stop;
    std::list<fiber_info> _alive;
    ss::condition_variable _ended;

    ss::future<> keep(std::list<fiber_info>::iterator, plan);
    // True: run it again.
    ss::future<bool> after_end(fiber_info&, const plan&, backoff&, std::string why);
};

} // namespace tidepool
