// What a listener serves: routes, the request as a handler sees it, and the answer it gives.
#pragma once

#include "proto/http/head.hh"
#include "proto/http/response.hh"
#include "shards/runtime/config/config.hh"
#include "shards/runtime/deadline.hh"
#include "shards/runtime/metrics.hh"

#include <functional>
#include <memory>
#include <optional>
#include <seastar/core/future.hh>
#include <string>
#include <unordered_map>
#include <vector>

namespace tidepool {

// Views into the connection's buffers; valid until the handler's future resolves.
struct request {
    http::request_head head;
    std::string_view body;
    std::string param; // the last path segment of a "/prefix/{}" route, decoded
    deadline expires;
};

// Server-sent events as an answer. The connection pulls; whoever falls too far behind is dropped.
class event_source {
public:
    virtual ~event_source() = default;
    // The next event's data; nothing when `until` passes first or the source has ended.
    virtual ss::future<std::optional<std::string>> next(deadline until) = 0;
    virtual bool ended() const noexcept = 0;
    virtual uint64_t behind() const noexcept = 0;
    // Ends it: a next() that waits returns.
    virtual void close() noexcept = 0;
};

struct answer {
    http::response response{};
    std::unique_ptr<event_source> events{};
};

using answer_future = ss::future<result<answer>>;
// Runs on the accepting core. May suspend; must not keep references into the request after its
// future resolved.
using handler = std::function<answer_future(const request&)>;

inline answer_future reply(http::response r) {
    return ss::make_ready_future<result<answer>>(answer{std::move(r), nullptr});
}

inline answer_future reply_json(std::string body, uint16_t status = 200) {
    return reply({.status = status, .body = std::move(body)});
}

struct route_options {
    // The most memory an answer takes, admitted before the handler runs; none for small ones.
    uint64_t (*answer_bytes)(const config&) = nullptr;
    bool account_in_param = false; // the last segment names an account, for capabilities
    bool always = false;           // answered while draining and without a capability: probes
};

struct route {
    http::method verb;
    std::string pattern; // as documented: "/v1/echo/{}"
    route_options options;
    handler handle;
    latency_histogram latency;
    std::array<uint64_t, 6> by_class{}; // answers by status / 100

    bool safe() const noexcept { return verb == http::method::get || verb == http::method::head; }
};

// Exact paths, and prefixes whose last segment is a parameter. HEAD is served by GET's handler.
class router {
    struct methods {
        std::vector<std::unique_ptr<route>> routes;
    };
    struct text_hash : std::hash<std::string_view> {
        using is_transparent = void;
    };
    std::unordered_map<std::string, methods, text_hash, std::equal_to<>> _exact;
    std::unordered_map<std::string, methods, text_hash, std::equal_to<>>
        _prefixes; // with the final '/'

public:
    struct match {
        route* found = nullptr;
        bool path_known = false;  // 405 rather than 404
        std::string_view param{}; // still encoded
    };

    void add(http::method verb, std::string pattern, handler h, route_options options = {});
    match find(http::method verb, std::string_view path) const;
    // "GET, HEAD, PUT": what a path answers to.
    std::string allowed(std::string_view path) const;
    // Every route, for metrics.
    std::vector<route*> all() const;
};

} // namespace tidepool
