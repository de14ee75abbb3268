// The one error table of the product: what went wrong, once, for every service and both wire
// protocols.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace tidepool {

enum class errc : uint8_t {
    busy,
    timeout,
    canceled,
    not_ready,
    breaker_open,
    upstream_unavailable,
    frame_too_large,
    header_too_large,
    bad_request,
    unauthorized,
    forbidden,
    not_found,
    method_not_allowed,
    conflict,
    key_reused,
    insufficient_funds,
    lagging,
    hop_exceeded,
    bad_signature,
    stale_record,
    unsupported,
    internal,
};

inline constexpr size_t errc_count = static_cast<size_t>(errc::internal) + 1;

struct errc_info {
    std::string_view name;      // the `code` of an error body
    uint16_t status;            // HTTP status, and the code of an OAP frame
    bool retryable;             // may the same request succeed later?
    uint16_t retry_after_s = 0; // > 0: the answer carries Retry-After
};

const errc_info& info(errc) noexcept;

inline std::string_view name(errc e) noexcept {
    return info(e).name;
}

// An error on the request path. `field` names the input at fault, `retry_after` overrides the
// table's.
struct error {
    errc code = errc::internal;
    std::string message{};
    std::string field{};
    std::chrono::seconds retry_after{0};
};

template <typename T>
using result = std::expected<T, error>;

inline std::unexpected<error> fail(errc code, std::string message = {}, std::string field = {}) {
    return std::unexpected(error{code, std::move(message), std::move(field)});
}

// {"code":..,"message":..,"retryable":..,"corr_id":..} and "field" where an input is at fault.
std::string error_body(const error&, std::string_view corr_id);

std::chrono::seconds retry_after(const error&) noexcept;

} // namespace tidepool
