// One HTTP listener on one core: accepts, admits, keeps the connections, times them out, drains
// them.
//
// Which core: each core has an instance; Seastar deals new connections out evenly. A connection
// stays on its core. How it stops: begin_drain() stops accepting, closes what is idle and refuses
// new requests with 503; drain() waits for the rest until the deadline, then cuts them off and
// counts them.
#pragma once

#include "shards/edge/authorizer.hh"
#include "shards/edge/routes.hh"
#include "shards/runtime/runtime.hh"

#include <boost/intrusive/list.hpp>
#include <seastar/core/gate.hh>
#include <seastar/net/api.hh>
#include <seastar/net/tls.hh>

namespace tidepool {

class connection;

// A connection as its server sees it.
class live_connection : public boost::intrusive::list_base_hook<> {
public:
    virtual ~live_connection() = default;
    // Has the deadline of what it is doing passed?
    virtual bool late(ss::lowres_clock::time_point now) const noexcept = 0;
    // Ends whatever it waits for, and counts which deadline it was.
    virtual void time_out() = 0;
    // A request is under way: cutting it off now would lose something.
    virtual bool busy() const noexcept = 0;
    // The node drains: close if idle, otherwise after the answer.
    virtual void begin_drain() noexcept = 0;
    virtual void cut_off() noexcept = 0;
};

struct listener_options {
    std::string name;       // "http" or "ops": logs, metrics, fibers
    std::string config_key; // which key holds the address, for messages
    std::string listen;
    uint64_t backlog;
    tls_config tls;
    bool admitted; // the public listener: admission quotas and capabilities apply
    ss::scheduling_group group;
};

class http_server : public owned {
public:
    http_server(listener_options, ss::sharded<runtime>&);
    ~http_server();

    router routes;
    authorizer auth;

    // Binds; core 0 must be first, the others share its socket.
    ss::future<> listen();
    // Begins to accept. Routes must be complete.
    void start();

    void begin_drain();
    // True when every connection ended by itself.
    ss::future<bool> drain(deadline);
    ss::future<> stop();

    uint64_t connections() const noexcept { return _connections.size(); }

private:
    friend class connection;

    listener_options _options;
    runtime& _runtime;
    std::optional<ss::server_socket> _listener;
    bool _draining = false;
    ss::gate _gate; // one holder a connection
    boost::intrusive::list<live_connection> _connections;
    unsigned _refusals_out = 0;
    uint64_t _sse_subscribers = 0;
    uint64_t _sse_dropped = 0;
    ss::metrics::metric_groups _metrics;
    std::string _date_line;
    int64_t _date_second = 0;

    ss::future<> accept_loop(ss::abort_source&);
    ss::future<> time_out_loop(ss::abort_source&);
    void accepted(ss::accept_result);
    ss::future<> serve(std::unique_ptr<connection>);
    ss::future<> refuse(ss::connected_socket, error);
    void register_metrics();
    std::string_view date_line();
    bool over_ops_limit() const;
};

// "127.0.0.1:8080" or "[::1]:8080"; throws std::invalid_argument.
ss::socket_address parse_address(const std::string& text);

} // namespace tidepool
