#include "proto/base/errc.hh"

#include "proto/base/json_out.hh"

#include <array>
#include <utility>

namespace tidepool {

namespace {

constexpr std::array<errc_info, errc_count> table{{
    {"busy", 429, true, 1},
    {"timeout", 504, true},
    {"canceled", 503, true, 1},
    {"not_ready", 503, true, 5},
    {"breaker_open", 503, true, 1},
    {"upstream_unavailable", 503, true, 1},
    {"frame_too_large", 413, false},
    {"header_too_large", 431, false},
    {"bad_request", 400, false},
    {"unauthorized", 401, false},
    {"forbidden", 403, false},
    {"not_found", 404, false},
    {"method_not_allowed", 405, false},
    {"conflict", 409, true},
    {"key_reused", 422, false},
    {"insufficient_funds", 409, false},
    {"lagging", 503, true},
    {"hop_exceeded", 504, true},
    {"bad_signature", 400, false},
    {"stale_record", 409, false},
    {"unsupported", 501, false},
    {"internal", 500, false},
}};

} // namespace

const errc_info& info(errc e) noexcept {
    return table[std::to_underlying(e)];
}

std::string error_body(const error& e, std::string_view corr_id) {
    const auto& row = info(e.code);
    json_object out;
    out.add("code", row.name);
    out.add("message", e.message.empty() ? row.name : std::string_view(e.message));
    if (!e.field.empty()) {
        out.add("field", e.field);
    }
    out.add("retryable", row.retryable);
    out.add("corr_id", corr_id);
    return std::move(out).str();
}

std::chrono::seconds retry_after(const error& e) noexcept {
    return e.retry_after.count() > 0 ? e.retry_after
                                     : std::chrono::seconds(info(e.code).retry_after_s);
}

} // namespace tidepool
