#include "shards/echo/echo_core.hh"

#include <fmt/format.h>

namespace tidepool {

result<echo_value> echo_core::get(std::string_view key) const {
    const auto found = _values.find(key);
    if (found == _values.end()) {
        return fail(errc::not_found, "no such key", "key");
    }
    return found->second;
}

result<uint64_t> echo_core::put(
    std::string_view key, std::string_view value, const echo_limits& limits) {
    if (value.size() > limits.value_max_bytes) {
        return fail(errc::frame_too_large,
            fmt::format("longer than {} bytes", limits.value_max_bytes), "value");
    }
    auto found = _values.find(key);
    if (found == _values.end()) {
        if (_values.size() >= limits.keys_max) {
            return fail(errc::busy, "no room for another key");
        }
        found = _values.try_emplace(std::string(key)).first;
    }
    found->second.value = std::string(value);
    return ++found->second.version;
}

result<void> echo_core::erase(std::string_view key) {
    const auto found = _values.find(key);
    if (found == _values.end()) {
        return fail(errc::not_found, "no such key", "key");
    }
    _values.erase(found);
    return {};
}

} // namespace tidepool
