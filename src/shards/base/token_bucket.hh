// Token bucket, pure: the time comes in. Owned by one core; a node-wide rate is split evenly over
// the cores.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>

namespace tidepool {

class token_bucket {
public:
    using time_point = std::chrono::steady_clock::time_point;

    // rate 0 means unlimited. The burst is what may be taken at once after a pause.
    token_bucket(double rate_per_s, double burst)
        : _rate(rate_per_s), _burst(burst), _tokens(burst) {}

    bool try_take(double amount, time_point now) {
        if (_rate <= 0) {
            return true;
        }
        refill(now);
        if (_tokens < amount) {
            return false;
        }
        _tokens -= amount;
        return true;
    }

    // Takes what is asked even if that leaves a debt: for costs known only afterwards.
    void charge(double amount, time_point now) {
        if (_rate > 0) {
            refill(now);
            _tokens -= amount;
        }
    }

    // When `amount` will be there, for Retry-After. Rounded up to whole seconds, at least one.
    std::chrono::seconds wait_for(double amount) const {
        const double missing = std::max(0.0, amount - _tokens);
        const double wait_s = _rate > 0 ? std::ceil(missing / _rate) : 1;
        return std::chrono::seconds(std::max(1L, static_cast<long>(wait_s)));
    }

    // A new limit keeps what has been taken: a reload gives nobody a fresh burst.
    void set_rate(double rate_per_s, double burst, time_point now) {
        refill(now);
        if (rate_per_s == _rate && burst == _burst) {
            return;
        }
        _tokens = _rate <= 0 ? burst : std::min(_tokens, burst);
        _rate = rate_per_s;
        _burst = burst;
    }

private:
    double _rate;
    double _burst;
    double _tokens;
    time_point _last{};

    void refill(time_point now) {
        if (_last != time_point{} && now > _last) {
            const double elapsed_s = std::chrono::duration<double>(now - _last).count();
            _tokens = std::min(_burst, _tokens + elapsed_s * _rate);
        }
        _last = std::max(_last, now);
    }
};

} // namespace tidepool
