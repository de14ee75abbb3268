#include "shards/runtime/runtime.hh"

#include "shards/runtime/logs.hh"

#include <seastar/core/coroutine.hh>
#include <seastar/core/reactor.hh>
#include <seastar/coroutine/exception.hh>

namespace tidepool {

namespace {

constexpr unsigned crowded_samples_max = 30;
const std::string queues_ok = "queues_ok";

} // namespace

runtime::runtime(const runtime_seed& seed)
    : conf(seed.configuration.values), groups(seed.groups), life(seed.began),
      admit(conf->admission, metrics)
      // Each core draws from its own sequence.
      ,
      fibers(metrics, mix64(seed.random_seed + ss::this_shard_id())),
      random(mix64(~seed.random_seed + ss::this_shard_id())), _hops(seed.hops) {
    conf.on_change([this](const config& c) {
        admit.configure(c.admission);
        groups.set_shares(c.groups);
        if (ss::this_shard_id() == 0) {
            apply_log_levels(c.log);
        }
    });
}

mailbox_hops runtime::hops(hop_level level, unsigned capacity) {
    _budget.reserve(level, capacity);
    return {_hops.at(level), _hops.at(hop_level::reply)};
}

void runtime::sample() {
    const auto busy = ss::engine().total_busy_time();
    const auto idle = ss::engine().total_idle_time();
    const double worked =
        std::chrono::duration<double>(busy - std::exchange(_busy_before, busy)).count();
    const double slept =
        std::chrono::duration<double>(idle - std::exchange(_idle_before, idle)).count();
    _busy = worked / std::max(worked + slept, 1e-9);
    _crowded_samples = queues.crowded() > 0 ? _crowded_samples + 1 : 0;
    if (_crowded_samples >= crowded_samples_max) {
        life.lacks(queues_ok);
    } else {
        life.has(queues_ok);
    }
}

ss::future<config_diff> reload(ss::sharded<runtime>& cores, const config& next) {
    auto diff = diff_config(*cores.local().conf, next);
    if (diff.live.empty()) {
        co_return diff;
    }
    std::exception_ptr failed;
    try {
        co_await cores.invoke_on_all([&diff](runtime& r) { r.conf.stage(diff.merged); });
    } catch (...) {
        failed = std::current_exception();
    }
    if (failed) {
        co_await cores.invoke_on_all([](runtime& r) { r.conf.drop_staged(); });
        co_return ss::coroutine::exception(failed);
    }
    co_await cores.invoke_on_all([](runtime& r) { r.conf.switch_to_staged(); });
    co_return diff;
}

} // namespace tidepool
