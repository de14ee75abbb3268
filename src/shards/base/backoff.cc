#include "shards/base/backoff.hh"

#include <algorithm>

namespace tidepool {

std::optional<std::chrono::milliseconds> backoff::next(random_source& random) {
    if (_used >= _policy.attempts) {
        return std::nullopt;
    }
    const int64_t first = _policy.first_ms.count();
    const int64_t drawn = std::uniform_int_distribution<int64_t>(first, 2 * first)(random);
    // Shifting by at most 20 keeps a minute's worth of milliseconds far from overflow.
    const int64_t delay = drawn << std::min(_used, 20U);
    ++_used;
    return std::chrono::milliseconds(std::min(delay, _policy.max_ms.count()));
}

} // namespace tidepool
