// JSON in: one object into typed fields, with simdjson. Unknown fields, duplicates, wrong types,
// missing fields and trailing bytes are refused with the name of the field; nothing is converted or
// guessed.
#pragma once

#include "proto/base/errc.hh"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tidepool::http {

// Where a field goes. A plain target is required, an optional one may be absent (null counts as
// absent).
using json_target =
    std::variant<std::string*, uint64_t*, int64_t*, double*, bool*, std::vector<std::string>*,
        std::optional<std::string>*, std::optional<uint64_t>*, std::optional<bool>*>;

struct json_field {
    std::string_view name;
    json_target target;
};

// At most 64 fields. On failure the targets hold whatever was read so far.
result<void> parse_json(std::string_view body, std::span<const json_field> fields);

inline result<void> parse_json(std::string_view body, std::initializer_list<json_field> fields) {
    return parse_json(body, std::span(fields.begin(), fields.size()));
}

} // namespace tidepool::http
