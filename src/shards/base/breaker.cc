#include "shards/base/breaker.hh"

#include <algorithm>

namespace tidepool {

int64_t breaker::epoch(time_point now) const noexcept {
    const auto step = std::max<int64_t>(1, _policy.window_ms.count() / static_cast<int64_t>(slots));
    return std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count()
           / step;
}

breaker::slot& breaker::slot_at(time_point now) {
    const auto e = epoch(now);
    auto& s = _slots[static_cast<size_t>(e) % slots];
    if (s.epoch != e) {
        s = slot{.epoch = e};
    }
    return s;
}

unsigned breaker::calls(time_point now) const noexcept {
    unsigned sum = 0;
    for (const auto& s : _slots) {
        sum += epoch(now) - s.epoch < static_cast<int64_t>(slots) ? s.calls : 0;
    }
    return sum;
}

unsigned breaker::failures(time_point now) const noexcept {
    unsigned sum = 0;
    for (const auto& s : _slots) {
        sum += epoch(now) - s.epoch < static_cast<int64_t>(slots) ? s.failures : 0;
    }
    return sum;
}

breaker::state breaker::current(time_point now) const noexcept {
    if (_closed) {
        return state::closed;
    }
    return now - _opened_at < _policy.cooldown_ms ? state::open : state::half_open;
}

breaker::ticket breaker::allow(time_point now) {
    switch (current(now)) {
    case state::closed:
        return {true, _generation};
    case state::open:
        return {false, _generation};
    case state::half_open:
        if (_probes_out + _probes_good >= _policy.probes) {
            return {false, _generation};
        }
        ++_probes_out;
        return {true, _generation};
    }
    return {};
}

void breaker::report(ticket t, bool success, time_point now) {
    if (!t.allowed || t.generation != _generation) {
        return;
    }
    if (!_closed) {
        --_probes_out;
        if (!success) {
            open(now);
        } else if (++_probes_good >= _policy.probes) {
            close();
        }
        return;
    }
    auto& s = slot_at(now);
    ++s.calls;
    s.failures += success ? 0 : 1;
    const auto total = calls(now);
    if (!success && total >= _policy.min_calls && failures(now) >= _policy.trip_ratio * total) {
        open(now);
    }
}

void breaker::forget(ticket t) {
    if (t.allowed && t.generation == _generation && !_closed) {
        --_probes_out;
    }
}

void breaker::open(time_point now) {
    _closed = false;
    _opened_at = now;
    _probes_out = 0;
    _probes_good = 0;
    ++_generation;
}

void breaker::close() {
    _closed = true;
    _slots = {};
    _probes_out = 0;
    _probes_good = 0;
    ++_generation;
}

std::string_view name(breaker::state s) noexcept {
    switch (s) {
    case breaker::state::closed:
        return "closed";
    case breaker::state::open:
        return "open";
    case breaker::state::half_open:
        return "half_open";
    }
    return "?";
}

} // namespace tidepool
