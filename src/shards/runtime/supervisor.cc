#include "shards/runtime/supervisor.hh"

#include <seastar/core/coroutine.hh>
#include <seastar/core/sleep.hh>

namespace tidepool {

namespace {

constexpr auto healthy_after = std::chrono::seconds(60);

} // namespace

void supervisor::spawn(
    std::string kind, std::string name, restart mode, backoff_policy policy, body run) {
    assert_owner();
    const auto row = _alive.insert(_alive.end(), {std::move(kind), std::move(name)});
    // Not lost: the row stays in _alive until the fiber ends, and stop() waits for the list to
    // empty.
    (void)keep(row, plan{mode, policy, std::move(run)});
}

ss::future<> supervisor::keep(std::list<fiber_info>::iterator row, plan p) {
    backoff pauses(p.policy);
    bool again = true;
    while (again && !_stop.abort_requested()) {
        _metrics.tasks_spawned.add(row->kind);
        const auto started = ss::lowres_clock::now();
        std::string why;
        try {
            co_await p.run(_stop);
        } catch (...) {
            why = fmt::format("{}", std::current_exception());
        }
        // One that ran well for a while starts its backoff anew: old failures say nothing about
        // this one.
        if (ss::lowres_clock::now() - started > healthy_after) {
            pauses.reset();
        }
        again = co_await after_end(*row, p, pauses, std::move(why));
    }
    if (_stop.abort_requested()) {
        _metrics.tasks_canceled.add(row->kind);
    }
    _alive.erase(row);
    _ended.broadcast();
}

ss::future<bool> supervisor::after_end(
    fiber_info& row, const plan& p, backoff& pauses, std::string why) {
    if (_stop.abort_requested()) {
        co_return false;
    }
    if (why.empty() && p.mode != restart::always) {
        co_return false;
    }
    const auto text = why.empty() ? std::string("it returned") : std::move(why);
    const auto pause = p.mode == restart::never ? std::nullopt : pauses.next(_random);
    if (!pause) {
        runtime_log.error("fiber {} failed for good: {}", row.name, text);
        if (_on_fatal) {
            _on_fatal(fmt::format("{}: {}", row.name, text));
        }
        co_return false;
    }
    runtime_log.warn(
        "fiber {} failed: {}; starting again in {} ms", row.name, text, pause->count());
    ++row.restarts;
    _metrics.service_restarts.add(row.name);
    _metrics.backoff_retries.add("fiber");
    try {
        co_await ss::sleep_abortable<ss::lowres_clock>(*pause, _stop);
    } catch (const ss::sleep_aborted&) {
        co_return false;
    }
    co_return true;
}

ss::future<std::vector<std::string>> supervisor::stop(deadline until) {
    assert_owner();
    if (!_stop.abort_requested()) {
        _stop.request_abort();
    }
    std::vector<std::string> left;
    try {
        co_await _ended.wait(until.at(), [this] { return _alive.empty(); });
    } catch (const ss::condition_variable_timed_out&) {
        for (const auto& row : _alive) {
            _metrics.tasks_aborted.add(row.kind);
            left.push_back(row.name);
        }
    }
    co_return left;
}

} // namespace tidepool
