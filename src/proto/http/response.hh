// HTTP answers: values -> bytes.
#pragma once

#include "proto/base/errc.hh"

#include <cstdint>
#include <string>
#include <string_view>

namespace tidepool::http {

inline constexpr std::string_view json_type = "application/json";
inline constexpr std::string_view text_type = "text/plain; charset=utf-8";

struct response {
    uint16_t status = 200;
    std::string_view content_type = json_type; // a literal
    std::string body{};
    std::string headers{}; // more header lines, each ending in CR LF
    bool close = false;    // the connection ends after this answer
};

struct answer_frame {
    std::string_view date; // "Date: ...\r\n"
    bool keep_alive;
    bool head_only; // HEAD: the length, not the bytes
    bool http_1_0 = false;
};

std::string_view reason(uint16_t status) noexcept;

void append_response(std::string& out, const response&, const answer_frame&);

// The head of an answer of unknown length that ends with the connection (server-sent events).
void append_stream_head(std::string& out, std::string_view content_type, std::string_view date);

response error_response(const error&, std::string_view corr_id);

// "Date: Mon, 16 Nov 2026 00:00:00 GMT\r\n"
std::string date_line(int64_t unix_seconds);

} // namespace tidepool::http
