// One GET over one connection, blocking, bounded in time and size. Enough for a node's ops
// listener.
#pragma once

#include "args.hh"

#include <chrono>
#include <string>
#include <string_view>

namespace tidepool::ctl {

struct http_target {
    std::string host; // a name, an IPv4 address, or an IPv6 address without its brackets
    std::string port;

    std::string text() const;
};

// "127.0.0.1:9600", "[::1]:9600", "node.example:9600".
outcome<http_target> parse_target(std::string_view text);

struct http_limits {
    std::chrono::milliseconds deadline{2'000}; // for everything after the look-up of a name
    size_t response_max_bytes = 4 * 1024 * 1024;
};

// The body of a 200 answer. Every failure is exit_code::unreachable and names the target.
outcome<std::string> http_get(
    const http_target&, std::string_view path, const http_limits& = http_limits());

} // namespace tidepool::ctl
