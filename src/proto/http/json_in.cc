#include "proto/http/json_in.hh"

#include <algorithm>
#include <fmt/format.h>
#include <simdjson.h>

namespace tidepool::http {

namespace {

// The DOM interface, not on-demand: it picks the instruction set at run time, so one binary is fast
// everywhere.
namespace dom = simdjson::dom;

std::unexpected<error> bad(std::string_view field, std::string_view why) {
    return fail(errc::bad_request, std::string(why), std::string(field));
}

// Each reads one value of exactly its type; false means another type.
bool read(dom::element v, std::string& out) {
    std::string_view text;
    if (v.get_string().get(text)) {
        return false;
    }
    out = std::string(text);
    return true;
}
bool read(dom::element v, uint64_t& out) {
    return !v.get_uint64().get(out);
}
bool read(dom::element v, int64_t& out) {
    return !v.get_int64().get(out);
}
bool read(dom::element v, double& out) {
    return !v.get_double().get(out);
}
bool read(dom::element v, bool& out) {
    return !v.get_bool().get(out);
}
bool read(dom::element v, std::vector<std::string>& out) {
    dom::array items;
    if (v.get_array().get(items)) {
        return false;
    }
    out.clear();
    return std::ranges::all_of(
        items, [&](dom::element item) { return read(item, out.emplace_back()); });
}
template <typename T>
bool read(dom::element v, std::optional<T>& out) {
    if (v.is_null()) {
        out.reset();
        return true;
    }
    return read(v, out.emplace());
}

std::string_view type_name(const json_target& target) {
    struct namer {
        std::string_view operator()(const std::string*) { return "text"; }
        std::string_view operator()(const uint64_t*) { return "a whole number, not negative"; }
        std::string_view operator()(const int64_t*) { return "a whole number"; }
        std::string_view operator()(const double*) { return "a number"; }
        std::string_view operator()(const bool*) { return "true or false"; }
        std::string_view operator()(const std::vector<std::string>*) { return "a list of texts"; }
        std::string_view operator()(const std::optional<std::string>*) { return "text or null"; }
        std::string_view operator()(const std::optional<uint64_t>*) {
            return "a whole number, not negative, or null";
        }
        std::string_view operator()(const std::optional<bool>*) { return "true, false or null"; }
    };
    return std::visit(namer{}, target);
}

bool is_optional(const json_target& target) {
    return target.index() >= 6;
}

result<void> read_fields(dom::object object, std::span<const json_field> fields) {
    uint64_t seen = 0;
    for (const auto [key, value] : object) {
        const auto found = std::ranges::find(fields, key, &json_field::name);
        if (found == fields.end()) {
            return bad(key.substr(0, 64), "no such field");
        }
        const uint64_t bit = uint64_t(1) << (found - fields.begin());
        if (seen & bit) {
            return bad(found->name, "given twice");
        }
        seen |= bit;
        if (!std::visit([&, v = value](auto* target) { return read(v, *target); }, found->target)) {
            return bad(found->name, fmt::format("must be {}", type_name(found->target)));
        }
    }
    for (size_t i = 0; i < fields.size(); ++i) {
        if (!(seen & (uint64_t(1) << i)) && !is_optional(fields[i].target)) {
            return bad(fields[i].name, "is missing");
        }
    }
    return {};
}

} // namespace

result<void> parse_json(std::string_view body, std::span<const json_field> fields) {
    if (fields.size() > 64) {
        return fail(errc::internal, "more than 64 fields");
    }
    // RFC 8259 8.1: no byte order mark; some versions of simdjson would skip it.
    if (body.empty() || body.starts_with("\xEF\xBB\xBF")) {
        return bad("body", "no valid JSON");
    }
    // One parser a thread: its buffers grow to the largest body seen, which the edge bounds.
    thread_local dom::parser parser;
    dom::element document;
    dom::object object;
    // parse() copies into its own padded buffer and refuses bytes after the value.
    if (parser.parse(body.data(), body.size()).get(document)) {
        return bad("body", "no valid JSON");
    }
    if (document.get_object().get(object)) {
        return bad("body", "must be a JSON object");
    }
    return read_fields(object, fields);
}

} // namespace tidepool::http
