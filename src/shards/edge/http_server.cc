#include "shards/edge/http_server.hh"

#include "shards/edge/connection.hh"
#include "shards/edge/logger.hh"

#include <seastar/core/coroutine.hh>
#include <seastar/core/sleep.hh>
#include <seastar/core/with_scheduling_group.hh>

namespace tidepool {

ss::logger edge_log("edge");

namespace sm = ss::metrics;

namespace {

constexpr unsigned refusals_max =
    64; // polite refusals being written; beyond that a connection is just closed
constexpr auto janitor_period = std::chrono::milliseconds(100);

ss::future<ss::shared_ptr<ss::tls::server_credentials>> make_credentials(const tls_config& c) {
    ss::tls::credentials_builder builder;
    co_await builder.set_x509_key_file(c.cert_file, c.key_file, ss::tls::x509_crt_format::PEM);
    builder.set_priority_string("SECURE128:+SECURE192:-VERS-ALL:+VERS-TLS1.3");
    co_return co_await builder.build_reloadable_server_credentials(
        [](const std::unordered_set<ss::sstring>& files, std::exception_ptr failed) {
            if (failed) {
                edge_log.error(
                    "certificate files changed but cannot be used, the old ones stay: {}", failed);
            } else {
                edge_log.info("certificates loaded again ({} files changed)", files.size());
            }
        });
}

} // namespace

void router::add(http::method verb, std::string pattern, handler h, route_options options) {
    const bool prefix = pattern.ends_with("/{}");
    const auto key = prefix ? pattern.substr(0, pattern.size() - 2) : pattern;
    auto& row = (prefix ? _prefixes : _exact)[key];
    row.routes.push_back(std::make_unique<route>(verb, std::move(pattern), options, std::move(h)));
}

router::match router::find(http::method verb, std::string_view path) const {
    const auto wanted = verb == http::method::head ? http::method::get : verb;
    match out;
    auto search = [&](const auto& table, std::string_view key) {
        const auto found = table.find(key);
        if (found == table.end()) {
            return;
        }
        out.path_known = true;
        for (const auto& r : found->second.routes) {
            out.found = r->verb == wanted ? r.get() : out.found;
        }
    };
    search(_exact, path);
    if (!out.path_known) {
        const auto slash = path.rfind('/') + 1;
        if (slash < path.size()) {
            search(_prefixes, path.substr(0, slash));
            out.param = path.substr(slash);
        }
    }
    return out;
}

std::string router::allowed(std::string_view path) const {
    using http::method;
    std::string out;
    for (const auto verb : {method::get, method::head, method::post, method::put, method::del,
             method::patch, method::options}) {
        if (find(verb, path).found) {
            out += out.empty() ? "" : ", ";
            out += name(verb);
        }
    }
    return out;
}

std::vector<route*> router::all() const {
    std::vector<route*> out;
    for (const auto* table : {&_exact, &_prefixes}) {
        for (const auto& [key, row] : *table) {
            for (const auto& r : row.routes) {
                out.push_back(r.get());
            }
        }
    }
    return out;
}

ss::socket_address parse_address(const std::string& text) {
    const auto colon = text.rfind(':');
    const auto port = colon == text.npos ? 0 : std::stoul(text.substr(colon + 1));
    if (port < 1 || port > 65'535) {
        throw std::invalid_argument(fmt::format("{}: the port must be 1 to 65535", text));
    }
    auto host = text.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) {
        host = host.substr(1, host.size() - 2);
    }
    return {ss::net::inet_address(host), static_cast<uint16_t>(port)};
}

http_server::http_server(listener_options options, ss::sharded<runtime>& cores)
    : auth(cores.local()), _options(std::move(options)), _runtime(cores.local()) {}

http_server::~http_server() = default;

ss::future<> http_server::listen() {
    ss::listen_options how;
    how.reuse_address = true;
    how.listen_backlog = static_cast<int>(_options.backlog);
    const auto address = parse_address(_options.listen);
    try {
        if (_options.tls.enabled) {
            _listener = ss::tls::listen(co_await make_credentials(_options.tls), address, how);
        } else {
            _listener = ss::listen(address, how);
        }
    } catch (const std::system_error& e) {
        throw std::runtime_error(fmt::format("cannot listen on {} ({}): {}", _options.listen,
            _options.config_key, e.code().message()));
    }
}

void http_server::start() {
    register_metrics();
    const auto name = _options.name;
    _runtime.fibers.spawn("listener", name + ".accept", restart::on_failure, connection_backoff,
        [this](ss::abort_source& stop) {
            return ss::with_scheduling_group(
                _options.group, [this, &stop] { return accept_loop(stop); });
        });
    _runtime.fibers.spawn("janitor", name + ".janitor", restart::always, fiber_backoff,
        [this](ss::abort_source& stop) { return time_out_loop(stop); });
}

void http_server::register_metrics() {
    const auto listener = sm::label("listener")(_options.name);
    _metrics.add_group("http",
        {
            sm::make_gauge("connections", [this] { return _connections.size(); },
                sm::description("Open connections"), {listener}),
            sm::make_gauge("sse_subscribers", [this] { return _sse_subscribers; },
                sm::description("Event-stream subscribers"), {listener}),
            sm::make_counter("sse_dropped_total", [this] { return _sse_dropped; },
                sm::description("Subscribers dropped because they fell behind"), {listener}),
        });
    for (auto* r : routes.all()) {
        const std::vector<sm::label_instance> labels{listener, sm::label("route")(r->pattern),
            sm::label("method")(std::string(name(r->verb)))};
        _metrics.add_group("request", {sm::make_histogram(
                                          "latency_seconds", [r] { return r->latency.value(); },
                                          sm::description("Time from head to answer"), labels)});
        for (size_t status : {2, 4, 5}) {
            auto with_status = labels;
            with_status.push_back(sm::label("status")(fmt::format("{}xx", status)));
            _metrics.add_group(
                "http", {sm::make_counter(
                            "requests_total", [r, status] { return r->by_class[status]; },
                            sm::description("Answers by route and status"), with_status)});
        }
    }
}

ss::future<> http_server::accept_loop(ss::abort_source& stop) {
    while (!_draining) {
        bool failed = false;
        try {
            accepted(co_await _listener->accept());
        } catch (...) {
            failed = !_draining;
            if (failed) {
                static thread_local ss::logger::rate_limit limit(std::chrono::seconds(5));
                edge_log.log(ss::log_level::warn, limit, "{}: accept: {}", _options.name,
                    std::current_exception());
            }
        }
        // Out of descriptors, or the client left before it was accepted: the next may be better,
        // after a breath.
        if (failed) {
            co_await ss::sleep_abortable<ss::lowres_clock>(std::chrono::milliseconds(10), stop);
        }
    }
}

bool http_server::over_ops_limit() const {
    return _connections.size() >= _runtime.conf->ops.connections_max / ss::smp::count + 1;
}

void http_server::accepted(ss::accept_result client) {
    assert_owner();
    result<admission::connection_permit> permit = admission::connection_permit();
    if (_options.admitted) {
        permit = _runtime.admit.admit_connection(client.remote_address.addr());
    } else if (over_ops_limit()) {
        permit = fail(errc::busy, "too many connections");
    }
    if (!permit) {
        _runtime.metrics.busy_rejections.add(_options.name);
        if (_refusals_out < refusals_max && !_options.tls.enabled) {
            (void)ss::with_gate(_gate, [this, &client, &permit] {
                return refuse(std::move(client.connection), std::move(permit.error()));
            });
        }
        return;
    }
    auto fresh =
        std::make_unique<connection>(*this, std::move(client.connection), std::move(*permit));
    // Not lost: the gate has it, and drain() waits for the gate.
    (void)ss::with_gate(_gate, [this, &fresh] { return serve(std::move(fresh)); });
}

ss::future<> http_server::serve(std::unique_ptr<connection> c) {
    _connections.push_back(*c);
    co_await c->run();
    _connections.erase(_connections.iterator_to(*c));
}

// A few bytes into an empty socket buffer: does not wait for the client.
ss::future<> http_server::refuse(ss::connected_socket socket, error why) {
    ++_refusals_out;
    try {
        auto out = socket.output();
        std::string text;
        http::append_response(text,
            http::error_response(why, fmt::format("{:016x}", _runtime.random())),
            {.date = date_line(), .keep_alive = false, .head_only = false});
        co_await out.write(text);
        co_await out.close();
    } catch (...) {
        edge_log.debug("refusing a connection: {}", std::current_exception());
    }
    --_refusals_out;
}

ss::future<> http_server::time_out_loop(ss::abort_source& stop) {
    while (!stop.abort_requested()) {
        const auto now = ss::lowres_clock::now();
        for (auto& c : _connections) {
            if (c.late(now)) {
                c.time_out();
            }
        }
        co_await ss::sleep_abortable<ss::lowres_clock>(janitor_period, stop);
    }
}

std::string_view http_server::date_line() {
    const auto now = ss::lowres_system_clock::now().time_since_epoch();
    const auto second = std::chrono::duration_cast<std::chrono::seconds>(now).count();
    if (second != _date_second) {
        _date_second = second;
        _date_line = http::date_line(second);
    }
    return _date_line;
}

void http_server::begin_drain() {
    assert_owner();
    if (std::exchange(_draining, true)) {
        return;
    }
    if (_listener) {
        _listener->abort_accept();
    }
    for (auto& c : _connections) {
        c.begin_drain();
    }
}

ss::future<bool> http_server::drain(deadline until) {
    begin_drain();
    auto closed = _gate.close();
    while (!closed.available() && !until.expired()) {
        co_await ss::sleep<ss::lowres_clock>(std::chrono::milliseconds(10));
    }
    // One that only says goodbye (TLS waits for the peer's) has lost nothing.
    const auto left = std::ranges::count_if(_connections, &live_connection::busy);
    for (auto& c : _connections) {
        c.cut_off();
    }
    if (left > 0) {
        edge_log.warn("{}: {} connections cut off at the drain deadline", _options.name, left);
        _runtime.metrics.tasks_aborted.add("connection", left);
    }
    co_await std::move(closed);
    co_return left == 0;
}

ss::future<> http_server::stop() {
    if (!_gate.is_closed()) {
        co_await drain(deadline::in(std::chrono::milliseconds(0)));
    }
    _listener.reset();
}

} // namespace tidepool
