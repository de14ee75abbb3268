#include "proto/cap/keyring.hh"

#include <fmt/format.h>
#include <sodium.h>

namespace tidepool::cap {

namespace {

bool valid_id(std::string_view id) {
    return !id.empty() && id.size() <= 32
           && id.find_first_not_of(
                  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
                  == id.npos;
}

} // namespace

result<keyring> keyring::parse(std::string_view text) {
    keyring ring;
    unsigned number = 0;
    while (!text.empty()) {
        auto line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        ++number;
        if (line.ends_with('\r')) {
            line.remove_suffix(1);
        }
        if (line.empty() || line.starts_with('#')) {
            continue;
        }
        const auto id = line.substr(0, line.find(' '));
        const auto hex = line.substr(std::min(line.size(), id.size() + 1));
        root_key key{};
        size_t length = 0;
        if (!valid_id(id) || hex.size() != 2 * key.size()
            || sodium_hex2bin(
                   key.data(), key.size(), hex.data(), hex.size(), nullptr, &length, nullptr)
                   != 0
            || length != key.size()) {
            return fail(errc::bad_request,
                fmt::format("line {}: needs `id` and 64 hexadecimal digits", number), "keys_file");
        }
        if (!ring._keys.emplace(id, key).second) {
            return fail(errc::bad_request, fmt::format("line {}: this id is given twice", number),
                "keys_file");
        }
    }
    return ring;
}

const root_key* keyring::find(std::string_view id) const noexcept {
    const auto found = _keys.find(id);
    return found == _keys.end() ? nullptr : &found->second;
}

} // namespace tidepool::cap
