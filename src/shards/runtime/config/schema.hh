// Every configuration key: default, range, unit, sentence, live or restart. docs/CONFIG.md is
// printed from this.
#pragma once

#include "shards/runtime/config/config.hh"

#include <expected>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tidepool {

enum class life : uint8_t {
    live,    // a reload changes it on every core at once
    restart, // a reload reports it; the running node keeps the old value
};

struct config_field {
    std::string path; // "http.read_timeout_ms"; "log.levels.*" takes any last name
    std::string type; // "whole number", "yes or no", "text", ...
    std::string unit;
    std::string allowed;
    life lifetime;
    std::string sentence;
    // Sets from text; the error says what is wrong with the value. `key` is the last name of a "*"
    // path.
    std::function<std::expected<void, std::string>(
        config&, std::string_view key, std::string_view text)>
        set;
    // The value as text, for show, docs and comparing.
    std::function<std::string(const config&)> get;

    bool is_map() const noexcept { return path.ends_with(".*"); }
};

std::span<const config_field> config_schema();

// The field for a full key ("log.levels.edge" finds "log.levels.*"), or null.
const config_field* find_field(std::string_view key);

// A YAML scalar in single quotes, in which only the quote itself needs doubling. No value holds a
// line break.
std::string yaml_quoted(std::string_view value);

// The closest known key, for "did you mean".
std::optional<std::string> closest_key(std::string_view key);

} // namespace tidepool
