#include "shards/runtime/config_store.hh"

#include "shards/runtime/logger.hh"

namespace tidepool {

void config_store::switch_to_staged() noexcept {
    if (!_staged) {
        return;
    }
    _current = std::exchange(_staged, nullptr);
    ++_version;
    for (const auto& l : _listeners) {
        try {
            l(*_current);
        } catch (...) {
            // The snapshot is in force all the same; a listener only derives something from it.
            runtime_log.error("a configuration listener failed: {}", std::current_exception());
        }
    }
}

} // namespace tidepool
