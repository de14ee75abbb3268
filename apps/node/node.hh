// The node: what is started in which order, and stopped in the reverse. Nothing else is decided
// here.
//
// Lives on core 0. run() returns when the node has stopped; stop is asked for by a signal or by a
// fiber that failed for good. Starts: groups, runtime, services, listeners bound, keys, accept,
// ready. Stops: not ready, stop accepting and refuse, drain up to the deadline, cut off and count,
// fibers, services, runtime. A stop is clean only if nothing had to be cut off and no fiber is
// left.
#pragma once

#include "shards/echo/echo_service.hh"
#include "shards/edge/http_server.hh"
#include "shards/runtime/latest_cell.hh"
#include "shards/runtime/runtime.hh"

#include <seastar/core/future.hh>
#include <seastar/core/sharded.hh>

namespace tidepool {

class node {
public:
    // `began` is when the process started, for start-up times.
    node(config_sources, loaded_config, std::chrono::steady_clock::time_point began);

    // The exit code.
    ss::future<int> run();

    // Ask it to stop, from core 0. More than once is harmless.
    void ask_to_stop(std::string why, bool failed);

    // Every queue that a node has, for docs/CONCURRENCY.md.
    static std::string concurrency_docs();

private:
    config_sources _sources;
    loaded_config _loaded;
    std::chrono::steady_clock::time_point _began;
    scheduling_groups _groups;
    hop_groups _hops;
    ss::sharded<runtime> _runtime;
    ss::sharded<echo_service> _echo;
    ss::sharded<http_server> _http;
    ss::sharded<http_server> _ops;
    struct stop_request {
        std::string why;
        bool failed = false;
    };
    std::optional<latest_cell<stop_request>> _stop;
    unsigned _reloads_asked = 0;

    ss::future<> start();
    ss::future<> start_listener(ss::sharded<http_server>&, listener_options);
    ss::future<> start_accepting();
    void watch_signals();
    void watch_pressure();
    static ss::future<cap::keyring> read_keys(const config&);
    ss::future<> use_keys(cap::keyring);
    ss::future<> reload_configuration();
    ss::future<> reload_once();
    void announce_ready();
    ss::future<bool> drain();
    ss::future<> stop_everything();
    listener_options http_listener() const;
    listener_options ops_listener() const;
};

} // namespace tidepool
