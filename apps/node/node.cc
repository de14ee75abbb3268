#include "node/node.hh"

#include "shards/edge/echo_routes.hh"
#include "shards/edge/ops_routes.hh"
#include "shards/runtime/logs.hh"

#include <random>
#include <seastar/core/coroutine.hh>
#include <seastar/core/reactor.hh>
#include <seastar/core/signal.hh>
#include <seastar/core/sleep.hh>
#include <seastar/util/file.hh>

namespace tidepool {

namespace {

ss::logger node_log("node");

constexpr queue_spec stop_spec{.name = "node.stop",
    .kind = queue_kind::latest_cell,
    .capacity = "1",
    .producer = "signals, supervisors",
    .consumer = "node, core 0",
    .policy = overflow::latest_wins,
    .counted = "queue_dropped_total"};

// After the drain deadline, how long what was aborted may take to let go of its memory.
constexpr auto let_go_time = std::chrono::seconds(2);
const std::string listeners_bound = "listeners_bound";

} // namespace

node::node(
    config_sources sources, loaded_config loaded, std::chrono::steady_clock::time_point began)
    : _sources(std::move(sources)), _loaded(std::move(loaded)), _began(began) {}

std::string node::concurrency_docs() {
    std::vector<const queue_spec*> specs{&stop_spec};
    const auto echo = echo_service::queues();
    specs.insert(specs.end(), echo.begin(), echo.end());
    return "# Queues\n\n"
           "Printed by `tidepool --queues` from the declarations in the code; a test keeps the two "
           "equal, so change the\n"
           "declaration, then run `make docs`. Every queue of the node is here: bounded, named, "
           "counted. How cores and\n"
           "queues work together is in the README of `src/shards/runtime/`.\n\n"
           + queue_table(specs);
}

ss::future<int> node::run() {
    std::exception_ptr failed;
    bool clean = true;
    try {
        co_await start();
        co_await _stop->newer_than(0);
        node_log.info("stopping: {}", _stop->get().why);
        clean = co_await drain();
    } catch (...) {
        failed = std::current_exception();
    }
    const bool asked_as_failure = _stop && _stop->get().failed;
    co_await stop_everything();
    if (failed) {
        // Start-up problems are for the user: one line, without a stack.
        try {
            std::rethrow_exception(failed);
        } catch (const std::exception& e) {
            fmt::print(stderr, "tidepool: {}\n", e.what());
        }
        co_return 1;
    }
    node_log.info("stopped{}", clean ? " clean" : ", but not clean");
    co_return clean && !asked_as_failure ? 0 : 1;
}

listener_options node::http_listener() const {
    const auto& c = _loaded.values.http;
    return {.name = "http",
        .config_key = "http.listen",
        .listen = c.listen,
        .backlog = c.backlog,
        .tls = c.tls,
        .admitted = true,
        .group = _groups.edge};
}

listener_options node::ops_listener() const {
    return {.name = "ops",
        .config_key = "ops.listen",
        .listen = _loaded.values.ops.listen,
        .backlog = 128,
        .tls = {},
        .admitted = false,
        .group = _groups.ops};
}

ss::future<> node::start() {
    const auto& c = _loaded.values;
    _groups = co_await scheduling_groups::create(c.groups);
    _hops = co_await hop_groups::create();
    const runtime_seed seed{.configuration = _loaded,
        .groups = _groups,
        .hops = _hops,
        .began = _began,
        .random_seed = (uint64_t(std::random_device{}()) << 32) | std::random_device{}()};
    co_await _runtime.start(std::cref(seed));
    co_await _runtime.invoke_on_all([](runtime& r) { r.life.lacks(listeners_bound); });
    _stop.emplace(stop_spec, _runtime.local().queues);
    co_await _runtime.invoke_on_all([this](runtime& r) {
        r.fibers.on_fatal([this](std::string why) {
            // From whichever core it happened on; stopping is core 0's.
            (void)ss::smp::submit_to(0, [this, text = std::move(why)] { ask_to_stop(text, true); });
        });
    });
    watch_signals();
    co_await _echo.start(std::ref(_runtime), std::ref(_echo));
    co_await start_listener(_ops, ops_listener());
    co_await start_listener(_http, http_listener());
    co_await use_keys(co_await read_keys(c));
    co_await start_accepting();
    watch_pressure();
    co_await _runtime.invoke_on_all([](runtime& r) {
        r.life.has(listeners_bound);
        r.life.enter(phase::ready);
    });
    announce_ready();
}

ss::future<> node::start_listener(ss::sharded<http_server>& server, listener_options options) {
    co_await server.start(std::move(options), std::ref(_runtime));
    // Core 0 binds first, so that an address in use is found once and by name.
    for (unsigned core = 0; core < ss::smp::count; ++core) {
        co_await server.invoke_on(core, [](http_server& s) { return s.listen(); });
    }
}

ss::future<> node::start_accepting() {
    const bool echo = _loaded.values.echo.enabled;
    co_await _ops.invoke_on_all([this](http_server& s) {
        add_ops_routes(s, _runtime);
        s.start();
    });
    co_await _http.invoke_on_all([this, echo](http_server& s) {
        add_health_route(s);
        if (echo) {
            add_echo_routes(s, _echo);
        }
        s.start();
    });
}

void node::watch_signals() {
    ss::handle_signal(SIGINT, [this] { ask_to_stop("SIGINT", false); });
    ss::handle_signal(SIGTERM, [this] { ask_to_stop("SIGTERM", false); });
    ss::handle_signal(SIGHUP, [this] {
        _runtime.local().fibers.spawn("reload", "node.reload", restart::never, call_backoff,
            [this](ss::abort_source&) { return reload_configuration(); });
    });
}

void node::ask_to_stop(std::string why, bool failed) {
    // The first reason counts; a second signal while draining changes nothing.
    if (_stop && _stop->version() == 0) {
        _stop->set({std::move(why), failed});
    }
}

void node::watch_pressure() {
    // Discarded: invoke_on_all only spawns, and the supervisors keep what they spawned.
    (void)_runtime.invoke_on_all([](runtime& r) {
        r.fibers.spawn("janitor", "runtime.pressure", restart::always, fiber_backoff,
            [&r](ss::abort_source& stop) -> ss::future<> {
                return ss::do_until([&stop] { return stop.abort_requested(); },
                    [&r, &stop] {
                        r.sample();
                        return ss::sleep_abortable<ss::lowres_clock>(std::chrono::seconds(1), stop);
                    });
            });
    });
}

// Empty for no file.
ss::future<cap::keyring> node::read_keys(const config& c) {
    if (c.auth.keys_file.empty()) {
        co_return cap::keyring();
    }
    auto keys = co_await read_keyring(c.auth.keys_file);
    if (!keys) {
        throw std::runtime_error(fmt::format("{}: {}", keys.error().field, keys.error().message));
    }
    co_return std::move(*keys);
}

ss::future<> node::use_keys(cap::keyring keys) {
    co_await _http.invoke_on_all([&keys](http_server& s) { s.auth.set_keys(keys); });
    node_log.info("{} root keys in force", keys.size());
}

// Read, check, swap. A problem anywhere changes nothing and is logged in full.
ss::future<> node::reload_once() {
    try {
        std::string text;
        if (!_sources.file.empty()) {
            const auto bytes = co_await ss::util::read_entire_file_contiguous(_sources.file);
            text.assign(bytes.data(), bytes.size());
        }
        auto next = load_config_text(text, _sources);
        if (!next) {
            for (const auto& problem : next.error()) {
                node_log.error("configuration not changed: {}", problem.text());
            }
        } else {
            // The keys first: whatever is wrong with them must change nothing either.
            auto keys = co_await read_keys(next->values);
            const auto diff = co_await reload(_runtime, next->values);
            co_await use_keys(std::move(keys));
            for (const auto& change : diff.live) {
                node_log.info(
                    "configuration: {} changed from {} to {}", change.key, change.from, change.to);
            }
            for (const auto& change : diff.needs_restart) {
                node_log.warn("configuration: {} needs a restart to change from {} to {}",
                    change.key, change.from, change.to);
            }
            node_log.info("configuration version {} in force", _runtime.local().conf.version());
        }
    } catch (...) {
        node_log.error("configuration or keys not changed: {}", std::current_exception());
    }
}

// Signals that come while one is being worked on are one more reload together: the latest file
// wins.
ss::future<> node::reload_configuration() {
    if (++_reloads_asked > 1) {
        co_return;
    }
    while (_reloads_asked > 0) {
        const auto asked = _reloads_asked;
        co_await reload_once();
        _reloads_asked = _reloads_asked > asked ? 1 : 0;
    }
}

void node::announce_ready() {
    const auto& c = _loaded.values;
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - _began);
    node_log.info("ready after {} ms: {} cores, http {}, ops {}", took.count(), ss::smp::count,
        c.http.listen, c.ops.listen);
}

// True when everything ended by itself within the deadline.
ss::future<bool> node::drain() {
    const auto within = std::chrono::milliseconds(_runtime.local().conf->node.drain_deadline_ms);
    const auto until = deadline::in(within);
    co_await _runtime.invoke_on_all([](runtime& r) { r.life.enter(phase::draining); });
    co_await _http.invoke_on_all([](http_server& s) { s.begin_drain(); });
    const bool connections = co_await _http.map_reduce0(
        [until](http_server& s) { return s.drain(until); }, true, std::logical_and<>());
    co_await _echo.invoke_on_all([until](echo_service& s) { return s.close(until); });
    const bool calls = co_await _echo.map_reduce0(
        [](echo_service& s) { return s.drained(deadline::in(let_go_time)); }, true,
        std::logical_and<>());
    const bool ops = co_await _ops.map_reduce0(
        [](http_server& s) { return s.drain(deadline::in(std::chrono::seconds(1))); }, true,
        std::logical_and<>());
    const auto left = co_await _runtime.map_reduce0(
        [](runtime& r) { return r.fibers.stop(deadline::in(let_go_time)); },
        std::vector<std::string>{},
        [](std::vector<std::string> all, std::vector<std::string> one) {
            all.insert(all.end(), one.begin(), one.end());
            return all;
        });
    for (const auto& name : left) {
        node_log.error("fiber {} did not stop", name);
    }
    co_await _runtime.invoke_on_all([](runtime& r) { r.life.enter(phase::stopped); });
    co_return connections&& calls&& ops&& left.empty();
}

ss::future<> node::stop_everything() {
    if (_runtime.local_is_initialized()) {
        co_await _runtime.invoke_on_all(
            [](runtime& r) { return r.fibers.stop(deadline::in(let_go_time)).discard_result(); });
    }
    co_await _http.stop();
    co_await _ops.stop();
    co_await _echo.stop();
    _stop.reset();
    co_await _runtime.stop();
    // Groups are made once a process and go with it: removing them here would wait for tasks of
    // theirs that are left.
}

} // namespace tidepool
