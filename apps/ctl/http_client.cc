#include "http_client.hh"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fmt/format.h>
#include <memory>
#include <netdb.h>
#include <optional>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace tidepool::ctl {

namespace {

using clock = std::chrono::steady_clock;

template <typename Number>
bool parse_number(std::string_view text, Number& out) {
    const auto* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, out);
    return !text.empty() && parsed.ec == std::errc{} && parsed.ptr == end;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    return std::ranges::equal(a, b, {}, lower, lower);
}

std::string_view trimmed(std::string_view text) {
    const auto first = text.find_first_not_of(" \t");
    const auto last = text.find_last_not_of(" \t");
    return first == text.npos ? std::string_view() : text.substr(first, last - first + 1);
}

struct response_head {
    unsigned status = 0;
    std::optional<size_t> body_bytes; // none: the body ends with the connection
    bool chunked = false;
};

std::optional<response_head> parse_head(std::string_view text) {
    response_head head;
    const auto line = text.substr(0, text.find("\r\n"));
    if (!line.starts_with("HTTP/1.") || line.size() < 12
        || !parse_number(line.substr(9, 3), head.status)) {
        return std::nullopt;
    }
    while (text.find("\r\n") != text.npos) {
        text.remove_prefix(text.find("\r\n") + 2);
        const auto field = text.substr(0, text.find("\r\n"));
        const auto colon = field.find(':');
        const auto name = field.substr(0, colon);
        const auto value = colon == field.npos ? "" : trimmed(field.substr(colon + 1));
        if (equal_ignoring_case(name, "transfer-encoding")) {
            head.chunked = true;
        } else if (equal_ignoring_case(name, "content-length")) {
            size_t length = 0;
            if (!parse_number(value, length) || head.body_bytes.value_or(length) != length) {
                return std::nullopt;
            }
            head.body_bytes = length;
        }
    }
    return head;
}

// One exchange. Methods give false and leave the reason in `problem`.
class exchange {
    const http_limits& _limits;
    clock::time_point _deadline;
    int _fd = -1;

public:
    std::string problem;
    std::string received;

    explicit exchange(const http_limits& limits)
        : _limits(limits), _deadline(clock::now() + limits.deadline) {}
    exchange(const exchange&) = delete;
    exchange& operator=(const exchange&) = delete;
    ~exchange() { close(); }

    bool connect(const addrinfo& to) {
        close();
        _fd = ::socket(to.ai_family, to.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, to.ai_protocol);
        if (_fd < 0) {
            return failed(std::strerror(errno));
        }
        if (::connect(_fd, to.ai_addr, to.ai_addrlen) == 0) {
            return true;
        }
        if (errno != EINPROGRESS) {
            return failed(std::strerror(errno));
        }
        if (!wait_for(POLLOUT)) {
            return false;
        }
        int error = 0;
        socklen_t size = sizeof(error);
        ::getsockopt(_fd, SOL_SOCKET, SO_ERROR, &error, &size);
        return error == 0 || failed(std::strerror(error));
    }

    bool send(std::string_view request) {
        while (!request.empty()) {
            const auto sent = ::send(_fd, request.data(), request.size(), MSG_NOSIGNAL);
            if (sent > 0) {
                request.remove_prefix(static_cast<size_t>(sent));
            } else if (errno != EAGAIN && errno != EINTR) {
                return failed(std::strerror(errno));
            } else if (!wait_for(POLLOUT)) {
                return false;
            }
        }
        return true;
    }

    // Reads what is there now; `ended` tells that the other side closed.
    bool receive(bool& ended) {
        char buffer[16 * 1024];
        if (!wait_for(POLLIN)) {
            return false;
        }
        const auto got = ::recv(_fd, buffer, sizeof(buffer), 0);
        if (got < 0) {
            return errno == EAGAIN || errno == EINTR || failed(std::strerror(errno));
        }
        ended = got == 0;
        received.append(buffer, static_cast<size_t>(got));
        if (received.size() > _limits.response_max_bytes) {
            return failed(
                fmt::format("answers with more than {} bytes", _limits.response_max_bytes));
        }
        return true;
    }

    bool failed(std::string why) {
        problem = std::move(why);
        return false;
    }

private:
    void close() {
        if (_fd >= 0) {
            ::close(_fd);
            _fd = -1;
        }
    }

    bool wait_for(short events) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(_deadline - clock::now());
        pollfd one{_fd, events, 0};
        const int ready = left.count() > 0 ? ::poll(&one, 1, static_cast<int>(left.count())) : 0;
        if (ready == 0) {
            return failed(fmt::format("no answer within {} ms", _limits.deadline.count()));
        }
        // A signal ends the exchange: whoever sent it wants the program to stop.
        return ready > 0 || failed(std::strerror(errno));
    }
};

// Reads until the blank line; gives where the body begins, or nothing.
std::optional<size_t> read_head(exchange& x) {
    bool ended = false;
    for (;;) {
        const auto blank = x.received.find("\r\n\r\n");
        if (blank != std::string::npos) {
            return blank + 4;
        }
        if (ended) {
            x.failed("closed the connection before it answered");
            return std::nullopt;
        }
        if (!x.receive(ended)) {
            return std::nullopt;
        }
    }
}

// Reads up to the end of the body, which then is all that `received` holds.
bool read_response(exchange& x) {
    const auto body_at = read_head(x);
    if (!body_at) {
        return false;
    }
    const auto head = parse_head(std::string_view(x.received).substr(0, *body_at - 4));
    if (!head || head->chunked) {
        return x.failed("answers in a form that this program does not read");
    }
    bool ended = false;
    const auto missing = [&] {
        return !head->body_bytes || x.received.size() - *body_at < *head->body_bytes;
    };
    while (!ended && missing()) {
        if (!x.receive(ended)) {
            return false;
        }
    }
    if (head->body_bytes && missing()) {
        return x.failed("closed the connection in the middle of its answer");
    }
    x.received = x.received.substr(*body_at, head->body_bytes.value_or(std::string::npos));
    return head->status == 200 || x.failed(fmt::format("answers HTTP {}", head->status));
}

using address_list = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

outcome<address_list> look_up(const http_target& target) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_NUMERICSERV;
    addrinfo* found = nullptr;
    const int code = ::getaddrinfo(target.host.c_str(), target.port.c_str(), &hints, &found);
    if (code != 0) {
        return fail(
            exit_code::unreachable, fmt::format("{}: {}", target.text(), ::gai_strerror(code)));
    }
    return address_list(found, &::freeaddrinfo);
}

} // namespace

std::string http_target::text() const {
    return host.find(':') == host.npos ? fmt::format("{}:{}", host, port)
                                       : fmt::format("[{}]:{}", host, port);
}

outcome<http_target> parse_target(std::string_view text) {
    const auto colon = text.rfind(':');
    auto host = text.substr(0, colon);
    const auto port = colon == text.npos ? std::string_view() : text.substr(colon + 1);
    const bool bracketed = host.starts_with('[') && host.ends_with(']');
    if (bracketed) {
        host = host.substr(1, host.size() - 2);
    }
    uint16_t number = 0;
    // The host also goes into a header line, so it holds nothing but what an address may hold.
    const bool plain = std::ranges::all_of(host, [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
               || std::string_view(".-_:%").find(c) != std::string_view::npos;
    });
    if (host.empty() || !plain || (!bracketed && host.find(':') != host.npos)
        || !parse_number(port, number) || number == 0) {
        return fail(
            exit_code::usage, fmt::format("\"{}\" is no address: needs HOST:PORT or [IPV6]:PORT",
                                  text.substr(0, 64)));
    }
    return http_target{std::string(host), std::string(port)};
}

outcome<std::string> http_get(
    const http_target& target, std::string_view path, const http_limits& limits) {
    const auto addresses = look_up(target);
    if (!addresses) {
        return std::unexpected(addresses.error());
    }
    exchange x(limits);
    const auto request = fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n"
                                     "Accept: application/json\r\n\r\n",
        path, target.text());
    bool connected = false;
    for (const auto* a = addresses->get(); a != nullptr && !connected; a = a->ai_next) {
        connected = x.connect(*a);
    }
    if (connected && x.send(request) && read_response(x)) {
        return std::move(x.received);
    }
    return fail(exit_code::unreachable, fmt::format("{}: {}", target.text(), x.problem));
}

} // namespace tidepool::ctl
