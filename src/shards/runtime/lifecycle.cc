#include "shards/runtime/lifecycle.hh"

#include <array>

namespace tidepool {

std::string_view name(phase p) noexcept {
    constexpr std::array<std::string_view, 4> names{"starting", "ready", "draining", "stopped"};
    return names[static_cast<size_t>(p)];
}

void lifecycle::enter(phase next) {
    assert_owner();
    if (!_history.empty() && next <= _phase) {
        return; // repeated signals are harmless
    }
    _phase = next;
    const auto now = std::chrono::steady_clock::now();
    _history.push_back({next, std::chrono::duration_cast<std::chrono::milliseconds>(now - _began)});
}

std::chrono::seconds lifecycle::uptime() const {
    return std::chrono::duration_cast<std::chrono::seconds>(
        std::chrono::steady_clock::now() - _began);
}

} // namespace tidepool
