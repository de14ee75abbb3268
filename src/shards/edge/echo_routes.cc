#include "shards/edge/echo_routes.hh"

#include "proto/base/json_out.hh"
#include "proto/http/json_in.hh"

#include <seastar/core/coroutine.hh>

namespace tidepool {

namespace {

constexpr route_options keyed{.account_in_param = true};
// A value is in the owner's answer and in the text made of it.
constexpr route_options keyed_with_value{
    .answer_bytes = [](const config& c) { return 2 * c.echo.value_max_bytes; },
    .account_in_param = true};
constexpr size_t key_max_bytes = 256;

result<void> check_key(const std::string& key) {
    if (key.empty() || key.size() > key_max_bytes) {
        return fail(
            errc::bad_request, fmt::format("must have 1 to {} bytes", key_max_bytes), "key");
    }
    return {};
}

answer_future refuse(error e) {
    return ss::make_ready_future<result<answer>>(std::unexpected(std::move(e)));
}

answer_future get(echo_service& echo, const request& req) {
    if (auto ok = check_key(req.param); !ok) {
        return refuse(std::move(ok.error()));
    }
    return echo.get(req.param, req.expires)
        .then([&req](result<loan<echo_answer>> found) -> result<answer> {
            if (!found) {
                return std::unexpected(std::move(found.error()));
            }
            const echo_answer& a = **found;
            json_object out;
            out.add("key", req.param)
                .add("value", a.value.value)
                .add("version", a.value.version)
                .add("core", a.core);
            return answer{http::response{.body = std::move(out).str()}, nullptr};
        });
}

answer_future put(echo_service& echo, const request& req) {
    std::string value;
    auto ok = check_key(req.param);
    if (ok) {
        ok = http::parse_json(req.body, {{"value", &value}});
    }
    if (!ok) {
        return refuse(std::move(ok.error()));
    }
    return echo.put(req.param, std::move(value), req.expires)
        .then([&req](result<uint64_t> version) -> result<answer> {
            if (!version) {
                return std::unexpected(std::move(version.error()));
            }
            json_object out;
            out.add("key", req.param).add("version", *version);
            const uint16_t status = *version == 1 ? 201 : 200;
            return answer{http::response{.status = status, .body = std::move(out).str()}, nullptr};
        });
}

answer_future erase(echo_service& echo, const request& req) {
    return echo.erase(req.param, req.expires).then([&req](result<void> gone) -> result<answer> {
        if (!gone) {
            return std::unexpected(std::move(gone.error()));
        }
        json_object out;
        out.add("key", req.param);
        return answer{http::response{.body = std::move(out).str()}, nullptr};
    });
}

class echo_events final : public event_source {
    echo_service::event_subscription _subscription;

public:
    explicit echo_events(event_bus<echo_event>& bus) : _subscription(bus) {}

    ss::future<std::optional<std::string>> next(deadline until) override {
        const auto event = co_await _subscription.next(until);
        if (!event) {
            co_return std::nullopt;
        }
        json_object out;
        out.add("key", event->key).add("version", event->version);
        co_return std::move(out).str();
    }
    bool ended() const noexcept override { return _subscription.closed(); }
    uint64_t behind() const noexcept override { return _subscription.behind(); }
    void close() noexcept override { _subscription.close(); }
};

} // namespace

void add_echo_routes(http_server& server, ss::sharded<echo_service>& services) {
    using http::method;
    auto& echo = services.local();
    server.routes.add(
        method::get, "/v1/echo/{}", [&echo](const request& r) { return get(echo, r); },
        keyed_with_value);
    server.routes.add(
        method::put, "/v1/echo/{}", [&echo](const request& r) { return put(echo, r); }, keyed);
    server.routes.add(
        method::del, "/v1/echo/{}", [&echo](const request& r) { return erase(echo, r); }, keyed);
    server.routes.add(method::get, "/v1/echo-events", [&echo](const request&) {
        return ss::make_ready_future<result<answer>>(
            answer{{}, std::make_unique<echo_events>(echo.events())});
    });
}

} // namespace tidepool
