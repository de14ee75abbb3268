// Root keys by id, from text of the form "id hex64" a line. Pure: reading the file (and checking
// its mode) is the caller's.
#pragma once

#include "proto/base/errc.hh"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace tidepool::cap {

using root_key = std::array<uint8_t, 32>;

class keyring {
    std::map<std::string, root_key, std::less<>> _keys;

public:
    // '#' starts a comment line. Errors name the line, never its content.
    static result<keyring> parse(std::string_view text);

    const root_key* find(std::string_view id) const noexcept;
    size_t size() const noexcept { return _keys.size(); }
};

} // namespace tidepool::cap
