// The example service's logic: a bounded map with versions. Pure: no reactor, clock or I/O; one
// core owns one.
#pragma once

#include "proto/base/errc.hh"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tidepool {

struct echo_value {
    std::string value;
    uint64_t version = 0; // 1 for the first write of a key
};

struct echo_limits {
    uint64_t keys_max;
    uint64_t value_max_bytes;
};

class echo_core {
    struct text_hash : std::hash<std::string_view> {
        using is_transparent = void;
    };
    std::unordered_map<std::string, echo_value, text_hash, std::equal_to<>> _values;

public:
    result<echo_value> get(std::string_view key) const;
    // The new version. A value that is too long is refused, and a new key when there is no room.
    result<uint64_t> put(std::string_view key, std::string_view value, const echo_limits&);
    result<void> erase(std::string_view key);
    size_t size() const noexcept { return _values.size(); }
};

} // namespace tidepool
