// One HTTP/1.1 connection: its reader, its one writer, its deadlines. Owned by the core that
// accepted it.
//
// What may overlap: pipelined GET and HEAD requests run together, up to http.pipeline_max, and are
// answered in order; any other request waits for those before it and is finished before the next
// begins. Nothing is read while answers are owed, so a request's views into the input stay valid.
// All that is ready goes out in one write. Deadlines: the server's janitor looks at `late()`; there
// is no timer per request.
#pragma once

#include "proto/http/chunked.hh"
#include "shards/edge/http_server.hh"

#include <deque>
#include <seastar/core/iostream.hh>

namespace tidepool {

class connection final : public live_connection {
public:
    enum class activity : uint8_t { idle, reading, working, writing, streaming, lingering };

    connection(http_server&, ss::connected_socket, admission::connection_permit);

    // Until the client leaves, a deadline passes or the node drains. Never fails.
    ss::future<> run() noexcept;

    bool late(ss::lowres_clock::time_point now) const noexcept override { return now >= _late_at; }
    void time_out() override;
    bool busy() const noexcept override;
    void begin_drain() noexcept override;
    void cut_off() noexcept override;

private:
    // A request that is being worked on, with everything that must live as long.
    struct job {
        request req;
        ss::temporary_buffer<char> head_bytes; // what req.head points into, if there is a body
        std::string body;                      // if it had to be put together
        std::string corr_id;                   // the client's, or empty
        route* to = nullptr;
        std::chrono::steady_clock::time_point began;
        uint64_t allowed_body_bytes = 0; // by its capability, once unpacked
        admission::count_permit place;
        admission::count_permit memory;
        std::optional<answer_future> pending;
    };

    http_server& _server;
    runtime& _runtime;
    config_snapshot _conf; // one version for a batch of requests
    ss::connected_socket _socket;
    ss::data_source _in;
    ss::data_sink _sink;
    admission::connection_permit _permit;
    ss::temporary_buffer<char> _input; // received, not yet consumed
    size_t _scanned = 0;
    std::string _output;
    std::unique_ptr<job> _spare;
    std::deque<std::unique_ptr<job>> _owed; // in order of arrival
    event_source* _events = nullptr;        // while it streams
    admission::count_permit _output_memory;
    bool _closing = false;
    bool _timed_out = false;
    activity _doing = activity::idle;
    ss::lowres_clock::time_point _late_at = ss::lowres_clock::time_point::max();

    void now_doing(activity) noexcept;
    std::string_view unread() const noexcept { return {_input.get(), _input.size()}; }

    ss::future<> serve();
    ss::future<bool> fill();
    ss::future<> serve_input();
    ss::future<> serve_one(size_t head_bytes);
    void refuse_head(job&, const error&);
    ss::future<result<void>> make_room(job&);
    result<void> admit(job&, size_t head_bytes);
    result<void> find_route(job&);
    void set_deadline(job&);

    ss::future<result<void>> read_body(job&);
    ss::future<result<void>> read_sized(job&, uint64_t length);
    ss::future<result<void>> read_chunked(job&);
    ss::future<result<void>> unpack(job&);
    ss::future<> encourage(job&);
    ss::future<result<void>> more_input(job&);

    void answer_job(job&, result<answer>&&);
    void answer_error(job&, error);
    ss::future<> settle();
    ss::future<> flush();
    ss::future<> put(std::string_view bytes);
    ss::future<> stream(job&, std::unique_ptr<event_source>);
    ss::future<> watch_for_end(event_source&);
    ss::future<> linger();
    std::unique_ptr<job> take_job();
};

} // namespace tidepool
