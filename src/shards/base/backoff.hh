// Pure retry and restart timing: no clock, no sleep. The caller supplies randomness and waits.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>

namespace tidepool {

using random_source = std::mt19937_64;

// Exponential backoff with jitter: the n-th delay is first..2*first (drawn), doubled n times, never
// above `max`; after `attempts` delays there is none left.
struct backoff_policy {
    std::chrono::milliseconds first_ms;
    std::chrono::milliseconds max_ms;
    unsigned attempts;
};

// Calls to others: 50-100 ms, doubling, at most 2 s, at most 3 retries.
inline constexpr backoff_policy call_backoff{
    std::chrono::milliseconds(50), std::chrono::milliseconds(2000), 3};
// Connections: 100 ms to 2 s, five tries.
inline constexpr backoff_policy connection_backoff{
    std::chrono::milliseconds(100), std::chrono::milliseconds(2000), 5};
// Long-running fibers: 100 ms to 60 s, then the node fails closed.
inline constexpr backoff_policy fiber_backoff{
    std::chrono::milliseconds(100), std::chrono::milliseconds(60000), 10};

class backoff {
    backoff_policy _policy;
    unsigned _used = 0;

public:
    explicit backoff(backoff_policy policy) : _policy(policy) {}

    // The next delay, or nothing when the attempts are used up.
    std::optional<std::chrono::milliseconds> next(random_source&);
    void reset() noexcept { _used = 0; }
    unsigned used() const noexcept { return _used; }
};

} // namespace tidepool
