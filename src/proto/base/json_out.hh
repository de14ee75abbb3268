// JSON out: small builders over fmt that always give valid JSON. Input goes through json_in.hh.
#pragma once

#include <cmath>
#include <concepts>
#include <fmt/format.h>
#include <iterator>
#include <string>
#include <string_view>

namespace tidepool {

// Appends `text` as a JSON string. Bytes that are no valid UTF-8 become U+FFFD, so the result
// always parses.
void append_json_string(std::string& out, std::string_view text);

// A value that is JSON already.
struct raw_json {
    std::string_view text;
};

namespace detail {

inline void append_json_value(std::string& out, raw_json v) {
    out += v.text;
}
inline void append_json_value(std::string& out, std::string_view v) {
    append_json_string(out, v);
}
inline void append_json_value(std::string& out, const char* v) {
    append_json_string(out, v);
}
template <std::same_as<bool> Bool>
void append_json_value(std::string& out, Bool v) {
    out += v ? "true" : "false";
}
template <typename Number>
    requires(std::integral<Number> && !std::same_as<Number, bool>) || std::floating_point<Number>
void append_json_value(std::string& out, Number v) {
    if constexpr (std::floating_point<Number>) {
        if (!std::isfinite(v)) {
            out += "null"; // JSON has no word for it
            return;
        }
    }
    fmt::format_to(std::back_inserter(out), "{}", v);
}

} // namespace detail

class json_object {
    std::string _out = "{";

public:
    template <typename Value>
    json_object& add(std::string_view key, const Value& value) {
        if (_out.size() > 1) {
            _out += ',';
        }
        append_json_string(_out, key);
        _out += ':';
        detail::append_json_value(_out, value);
        return *this;
    }
    std::string str() && {
        _out += '}';
        return std::move(_out);
    }
};

class json_array {
    std::string _out = "[";

public:
    template <typename Value>
    json_array& add(const Value& value) {
        if (_out.size() > 1) {
            _out += ',';
        }
        detail::append_json_value(_out, value);
        return *this;
    }
    std::string str() && {
        _out += ']';
        return std::move(_out);
    }
};

} // namespace tidepool
