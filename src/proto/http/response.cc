#include "proto/http/response.hh"

#include <array>
#include <ctime>
#include <fmt/format.h>
#include <iterator>

namespace tidepool::http {

std::string_view reason(uint16_t status) noexcept {
    switch (status) {
    case 100:
        return "Continue";
    case 200:
        return "OK";
    case 201:
        return "Created";
    case 202:
        return "Accepted";
    case 204:
        return "No Content";
    case 400:
        return "Bad Request";
    case 401:
        return "Unauthorized";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 409:
        return "Conflict";
    case 413:
        return "Content Too Large";
    case 422:
        return "Unprocessable Content";
    case 429:
        return "Too Many Requests";
    case 431:
        return "Request Header Fields Too Large";
    case 500:
        return "Internal Server Error";
    case 501:
        return "Not Implemented";
    case 503:
        return "Service Unavailable";
    case 504:
        return "Gateway Timeout";
    default:
        return "Status";
    }
}

namespace {

void append_number(std::string& out, uint64_t n) {
    const fmt::format_int text(n);
    out.append(text.data(), text.size());
}

void append_status_line(std::string& out, uint16_t status) {
    if (status == 200) {
        out += "HTTP/1.1 200 OK\r\n";
        return;
    }
    out += "HTTP/1.1 ";
    append_number(out, status);
    out += ' ';
    out += reason(status);
    out += "\r\n";
}

} // namespace

void append_response(std::string& out, const response& r, const answer_frame& frame) {
    append_status_line(out, r.status);
    out += frame.date;
    if (r.status != 204) { // RFC 9110 8.6: no content, no length
        out += "Content-Type: ";
        out += r.content_type;
        out += "\r\nContent-Length: ";
        append_number(out, r.body.size());
        out += "\r\n";
    }
    if (!frame.keep_alive) {
        out += "Connection: close\r\n";
    } else if (frame.http_1_0) {
        out += "Connection: keep-alive\r\n"; // there it is not the default
    }
    out += r.headers;
    out += "\r\n";
    if (!frame.head_only) {
        out += r.body;
    }
}

void append_stream_head(std::string& out, std::string_view content_type, std::string_view date) {
    append_status_line(out, 200);
    out += date;
    out += "Content-Type: ";
    out += content_type;
    out += "\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n";
}

response error_response(const error& e, std::string_view corr_id) {
    response r{.status = info(e.code).status, .body = error_body(e, corr_id)};
    if (const auto wait = retry_after(e); wait.count() > 0) {
        r.headers = fmt::format("Retry-After: {}\r\n", wait.count());
    }
    if (e.code == errc::unauthorized) {
        r.headers += "WWW-Authenticate: Bearer\r\n";
    }
    return r;
}

std::string date_line(int64_t unix_seconds) {
    constexpr std::array<const char*, 7> days{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    constexpr std::array<const char*, 12> months{
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const std::time_t seconds = unix_seconds;
    std::tm t{};
    gmtime_r(&seconds, &t);
    return fmt::format("Date: {}, {:02} {} {} {:02}:{:02}:{:02} GMT\r\n",
        days[static_cast<size_t>(t.tm_wday)], t.tm_mday, months[static_cast<size_t>(t.tm_mon)],
        1900 + t.tm_year, t.tm_hour, t.tm_min, t.tm_sec);
}

} // namespace tidepool::http
