// HTTP/1.1 request head: bytes -> views, strict. Pure; the buffer stays the caller's and must
// outlive the views.
//
// Whatever two servers could read in two ways is refused, never repaired: both lengths, two Hosts,
// bare LF, folded or padded header names, lengths that are no plain number. That is what keeps
// request smuggling out.
#pragma once

#include "proto/base/errc.hh"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tidepool::http {

enum class method : uint8_t { get, head, post, put, del, patch, options, other };
enum class coding : uint8_t { identity, gzip, deflate };

std::string_view name(method) noexcept;

struct header {
    std::string_view name;
    std::string_view value;
};

struct request_head {
    static constexpr size_t headers_max = 64;

    method verb = method::other;
    std::string_view path;  // without the query
    std::string_view query; // without the '?'
    bool http_1_0 = false;
    bool keep_alive = true;
    bool chunked = false;
    bool expect_continue = false;
    coding content_coding = coding::identity;
    std::optional<uint64_t> content_length;
    std::string_view host;
    std::string_view authorization;
    size_t header_count = 0;
    std::array<header, headers_max> header_slots; // only the first header_count are set

    std::span<const header> headers() const noexcept { return {header_slots.data(), header_count}; }
    // The first header of that name (any case), or an empty view.
    std::string_view find(std::string_view name) const noexcept;
    bool has_body() const noexcept { return chunked || content_length.value_or(0) > 0; }
};

enum class parse_state : uint8_t { need_more, done, failed };

struct head_outcome {
    parse_state state = parse_state::need_more;
    size_t consumed = 0; // bytes of the head, when done
    error problem{};     // when failed
};

// Parses one head from the start of `bytes`. Restartable: call again with more bytes. `scanned`
// remembers how far the end of the head was searched, so that a client that drips bytes costs no
// second look at them; set it to 0 for a new head.
head_outcome parse_head(
    std::string_view bytes, size_t max_bytes, size_t& scanned, request_head& out);

bool equals_ignoring_case(std::string_view a, std::string_view b) noexcept;

// Decodes %XX; nothing for a bad escape or a decoded NUL.
std::optional<std::string> percent_decode(std::string_view text);

// The value of `name` in a query string, decoded ('+' is a space), or nothing.
std::optional<std::string> query_value(std::string_view query, std::string_view name);

} // namespace tidepool::http
