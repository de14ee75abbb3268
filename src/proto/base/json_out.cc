#include "proto/base/json_out.hh"

#include <algorithm>
#include <cstdint>

namespace tidepool {

namespace {

// Length of the valid UTF-8 sequence at the start of `s`, or 0.
size_t utf8_length(std::string_view s) {
    auto byte = [&](size_t i) { return static_cast<uint8_t>(s[i]); };
    auto continues = [&](size_t i) { return i < s.size() && (byte(i) & 0xC0) == 0x80; };
    const auto lead = byte(0);
    if (lead < 0x80) {
        return 1;
    }
    if (lead >= 0xC2 && lead <= 0xDF) {
        return continues(1) ? 2 : 0;
    }
    if (lead >= 0xE0 && lead <= 0xEF && continues(1) && continues(2)) {
        const bool overlong = lead == 0xE0 && byte(1) < 0xA0;
        const bool surrogate = lead == 0xED && byte(1) >= 0xA0;
        return overlong || surrogate ? 0 : 3;
    }
    if (lead >= 0xF0 && lead <= 0xF4 && continues(1) && continues(2) && continues(3)) {
        const bool overlong = lead == 0xF0 && byte(1) < 0x90;
        const bool beyond = lead == 0xF4 && byte(1) >= 0x90;
        return overlong || beyond ? 0 : 4;
    }
    return 0;
}

void append_escaped(std::string& out, char c) {
    switch (c) {
    case '"':
        out += "\\\"";
        break;
    case '\\':
        out += "\\\\";
        break;
    case '\n':
        out += "\\n";
        break;
    case '\r':
        out += "\\r";
        break;
    case '\t':
        out += "\\t";
        break;
    default:
        fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<uint8_t>(c));
    }
}

} // namespace

void append_json_string(std::string& out, std::string_view text) {
    auto plain = [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; };
    out += '"';
    while (!text.empty()) {
        // Nearly all of nearly every text is a run of plain characters, copied at once.
        const auto run = static_cast<size_t>(std::ranges::find_if_not(text, plain) - text.begin());
        out += text.substr(0, run);
        text.remove_prefix(run);
        if (text.empty()) {
            break;
        }
        const char c = text.front();
        if (c == '"' || c == '\\' || static_cast<uint8_t>(c) < 0x20) {
            append_escaped(out, c);
            text.remove_prefix(1);
            continue;
        }
        const size_t length = utf8_length(text);
        out += length ? text.substr(0, length) : std::string_view("\xEF\xBF\xBD");
        text.remove_prefix(length ? length : 1);
    }
    out += '"';
}

} // namespace tidepool
