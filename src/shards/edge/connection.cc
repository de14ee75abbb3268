#include "shards/edge/connection.hh"

#include "proto/http/inflate.hh"
#include "shards/edge/logger.hh"

#include <charconv>
#include <seastar/core/coroutine.hh>
#include <seastar/coroutine/maybe_yield.hh>

namespace tidepool {

namespace {

using std::chrono::milliseconds;

constexpr size_t output_keep_bytes = 64 * 1024; // a larger output buffer is given back after use
constexpr size_t owed_max_bytes = 4 * 1024 * 1024;
constexpr size_t body_keep_bytes = 4 * 1024;
constexpr size_t output_flush_bytes =
    256 * 1024; // owed answers are written once they are this many bytes
constexpr size_t body_progress_bytes = 64 * 1024; // the read timeout begins anew with each of these
constexpr auto linger_time = milliseconds(1'000);
constexpr size_t linger_bytes = 2 * 1024 * 1024;
constexpr auto heartbeat = std::chrono::seconds(15);

std::string_view op_name(connection::activity a) {
    switch (a) {
    case connection::activity::reading:
        return "read";
    case connection::activity::writing:
    case connection::activity::streaming:
        return "write";
    default:
        return "idle";
    }
}

// A client's id for its request, if it is fit to be repeated in an answer.
std::string_view usable_corr_id(std::string_view text) {
    const bool plain = text.size() <= 64
                       && text.find_first_not_of(
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-")
                              == text.npos;
    return plain ? text : std::string_view();
}

void append_event(std::string& out, std::string_view data) {
    out += "data: ";
    for (const char c : data) {
        out += c;
        if (c == '\n') {
            out += "data: ";
        }
    }
    out += "\n\n";
}

} // namespace

connection::connection(
    http_server& server, ss::connected_socket socket, admission::connection_permit permit)
    : _server(server), _runtime(server._runtime), _conf(_runtime.conf.snapshot()),
      _socket(std::move(socket)),
      _in(_socket.input({.buffer_size = 4'096, .max_buffer_size = 32 * 1'024}).detach()),
      _sink(_socket.output().detach()), _permit(std::move(permit)) {}

void connection::now_doing(activity a) noexcept {
    _doing = a;
    const auto& c = _conf->http;
    const auto now = ss::lowres_clock::now();
    switch (a) {
    case activity::idle:
        _late_at = now + milliseconds(c.idle_timeout_ms);
        break;
    case activity::reading:
        _late_at = now + milliseconds(c.read_timeout_ms);
        break;
    case activity::writing:
        _late_at = now + milliseconds(c.write_timeout_ms);
        break;
    case activity::lingering:
        _late_at = now + linger_time;
        break;
    case activity::working:
    case activity::streaming:
        _late_at = ss::lowres_clock::time_point::max();
    }
}

void connection::time_out() {
    if (_doing != activity::lingering) {
        _runtime.metrics.io_timeouts.add(op_name(_doing));
    }
    _timed_out = true;
    _late_at = ss::lowres_clock::time_point::max();
    cut_off();
}

void connection::cut_off() noexcept {
    _closing = true;
    _socket.shutdown_input();
    _socket.shutdown_output();
}

bool connection::busy() const noexcept {
    return _doing != activity::idle && _doing != activity::lingering;
}

void connection::begin_drain() noexcept {
    if (_events) {
        _events->close();
    } else if (_doing == activity::idle) {
        // What is in the kernel's buffer can still be read, and is refused; then comes the end.
        _socket.shutdown_input();
    }
}

ss::future<> connection::run() noexcept {
    try {
        co_await serve();
        _doing = activity::lingering;
        if (!_timed_out) {
            co_await linger();
        }
    } catch (...) {
        // Resets and broken pipes are the client's business; the counters have what we did about
        // it.
        edge_log.debug("{}: connection ended: {}", _server._options.name, std::current_exception());
    }
    for (auto& owed : _owed) {
        // Their handlers still run; their answers have no reader.
        try {
            co_await std::move(*owed->pending).discard_result();
        } catch (...) {
            edge_log.debug(
                "a handler failed after its connection ended: {}", std::current_exception());
        }
    }
    try {
        co_await _sink.close();
        co_await _in.close();
    } catch (...) {
        edge_log.debug("closing a connection: {}", std::current_exception());
    }
}

ss::future<> connection::serve() {
    _socket.set_nodelay(true);
    _socket.set_keepalive(true);
    // A TLS handshake happens inside the first read, and must not take its time.
    bool fresh_tls = _server._options.tls.enabled;
    while (!_closing) {
        const bool waiting = _input.empty() && !std::exchange(fresh_tls, false);
        // A head that comes in pieces has one deadline for all of them.
        if (waiting || _doing != activity::reading) {
            now_doing(waiting ? activity::idle : activity::reading);
        }
        if (!co_await fill()) {
            co_return;
        }
        if (_doing == activity::idle) {
            now_doing(activity::reading);
        }
        co_await serve_input();
    }
}

// More bytes, behind those that are not consumed. False at the end of the stream.
ss::future<bool> connection::fill() {
    auto more = co_await _in.get();
    if (more.empty()) {
        co_return false;
    }
    if (_input.empty()) {
        _input = std::move(more);
        co_return true;
    }
    ss::temporary_buffer<char> both(_input.size() + more.size());
    std::copy_n(_input.get(), _input.size(), both.get_write());
    std::copy_n(more.get(), more.size(), both.get_write() + _input.size());
    _input = std::move(both);
    co_return true;
}

std::unique_ptr<connection::job> connection::take_job() {
    return _spare ? std::move(_spare) : std::make_unique<job>();
}

// Serves every complete request that has been received, then writes all answers at once.
ss::future<> connection::serve_input() {
    _conf = _runtime.conf.snapshot();
    while (!_input.empty() && !_closing) {
        auto next = take_job();
        const auto outcome =
            http::parse_head(unread(), _conf->http.header_max_bytes, _scanned, next->req.head);
        if (outcome.state == http::parse_state::need_more) {
            _spare = std::move(next);
            break;
        }
        _scanned = 0;
        if (outcome.state == http::parse_state::failed) {
            co_await settle();
            refuse_head(*next, outcome.problem);
            break;
        }
        now_doing(activity::working);
        _spare = std::move(next);
        co_await serve_one(outcome.consumed);
        if (_output.size() > output_flush_bytes) {
            co_await settle();
            co_await flush();
        }
        co_await ss::coroutine::maybe_yield();
    }
    co_await settle();
    co_await flush();
    if (_input.empty()) {
        _input = ss::temporary_buffer<char>(); // an idle connection holds no buffer
    }
}

// Nothing of the request before it may show in the answer to a head that cannot be read.
void connection::refuse_head(job& j, const error& why) {
    _closing = true;
    j.req.head.verb = http::method::other;
    j.req.head.http_1_0 = false;
    j.to = nullptr;
    j.corr_id.clear();
    answer_error(j, why);
}

// One request, whose head is in _spare.
ss::future<> connection::serve_one(size_t head_bytes) {
    auto j = take_job();
    if (j->req.head.has_body()) {
        // Reading on replaces _input; the head's views need its bytes for as long as the request
        // lives.
        j->head_bytes = _input.share(0, head_bytes);
    }
    _input.trim_front(head_bytes);
    auto admitted = admit(*j, head_bytes);
    const bool alone =
        j->req.head.has_body() || !j->to || !j->to->safe() || !j->req.head.keep_alive;
    if ((alone || !admitted) && !_owed.empty()) {
        co_await settle();
    }
    if (admitted && j->req.head.has_body()) {
        admitted = co_await read_body(*j);
    }
    if (!admitted) {
        // A body that was not read would be taken for the next request.
        _closing |= j->req.head.has_body() || _server._draining;
        answer_error(*j, std::move(admitted.error()));
        _spare = std::move(j);
        co_return;
    }
    if (auto room = co_await make_room(*j); !room) {
        co_await settle();
        answer_error(*j, std::move(room.error()));
        _spare = std::move(j);
        co_return;
    }
    auto pending = ss::futurize_invoke(j->to->handle, j->req);
    if (pending.available() && !pending.failed() && _owed.empty()) {
        auto done = pending.get();
        if (done && done->events) {
            co_await stream(*j, std::move(done->events));
        } else {
            answer_job(*j, std::move(done));
        }
        _spare = std::move(j);
        co_return;
    }
    j->pending.emplace(std::move(pending));
    _owed.push_back(std::move(j));
    if (alone || _owed.size() >= _conf->http.pipeline_max) {
        co_await settle();
    }
}

// Memory for the answer, before the work. No connection collects more than a few megabytes of
// answers: it first writes what it owes, so that a client that does not read holds up only itself.
ss::future<result<void>> connection::make_room(job& j) {
    if (!j.to->options.answer_bytes || !_server._options.admitted) {
        co_return result<void>{};
    }
    const auto bytes = j.to->options.answer_bytes(*_conf);
    if ((_owed.size() + 1) * bytes + _output_memory.amount() > owed_max_bytes) {
        co_await settle();
        co_await flush();
    }
    auto memory = _runtime.admit.admit_memory(bytes);
    if (!memory) {
        co_return std::unexpected(std::move(memory.error()));
    }
    j.memory.merge(std::move(*memory));
    co_return result<void>{};
}

// Everything that can be refused from the head alone, on this core, before anything is queued.
result<void> connection::admit(job& j, size_t head_bytes) {
    j.began = std::chrono::steady_clock::now();
    j.to = nullptr;
    j.allowed_body_bytes = std::numeric_limits<uint64_t>::max();
    j.corr_id = usable_corr_id(j.req.head.find("x-corr-id"));
    if (auto found = find_route(j); !found) {
        return found;
    }
    if (_server._draining && !j.to->options.always) {
        _runtime.metrics.not_ready.add("draining");
        return fail(errc::not_ready, "the node is stopping");
    }
    if (!_server._options.admitted) {
        return {};
    }
    auto place = _runtime.admit.admit_request(_permit, head_bytes);
    if (!place) {
        _runtime.metrics.busy_rejections.add(_server._options.name);
        return std::unexpected(std::move(place.error()));
    }
    j.place = std::move(*place);
    if (!j.to->options.always) {
        const auto account = j.to->options.account_in_param
                                 ? std::optional<std::string_view>(j.req.param)
                                 : std::nullopt;
        const auto allowed = _server.auth.check(j.req.head, account, _conf->http.body_max_bytes);
        if (!allowed) {
            return std::unexpected(allowed.error());
        }
        j.allowed_body_bytes = *allowed;
    }
    set_deadline(j);
    return {};
}

result<void> connection::find_route(job& j) {
    const auto match = _server.routes.find(j.req.head.verb, j.req.head.path);
    if (!match.found) {
        return match.path_known
                   ? fail(errc::method_not_allowed, "this path has no such method", "method")
                   : fail(errc::not_found, "no such path", "path");
    }
    auto param = http::percent_decode(match.param);
    if (!param) {
        return fail(errc::bad_request, "a bad percent escape", "path");
    }
    j.to = match.found;
    j.req.param = std::move(*param);
    return {};
}

void connection::set_deadline(job& j) {
    uint64_t wait_ms = _conf->http.request_deadline_ms;
    const auto asked = j.req.head.find("x-deadline-ms");
    uint64_t asked_ms = 0;
    const auto parsed = std::from_chars(asked.data(), asked.data() + asked.size(), asked_ms);
    if (!asked.empty() && parsed.ec == std::errc{} && parsed.ptr == asked.data() + asked.size()) {
        wait_ms = std::min(wait_ms, asked_ms);
    }
    j.req.expires = deadline::in(milliseconds(wait_ms));
}

ss::future<result<void>> connection::read_body(job& j) {
    const auto& head = j.req.head;
    now_doing(activity::reading);
    auto read =
        co_await (head.chunked ? read_chunked(j) : read_sized(j, head.content_length.value_or(0)));
    now_doing(activity::working);
    if (!read || head.content_coding == http::coding::identity) {
        co_return read;
    }
    co_return co_await unpack(j);
}

ss::future<result<void>> connection::read_sized(job& j, uint64_t length) {
    if (length > _conf->http.body_max_bytes) {
        co_return fail(errc::frame_too_large,
            fmt::format("longer than {} bytes", _conf->http.body_max_bytes), "body");
    }
    auto memory = _runtime.admit.admit_body(_permit, length);
    if (!memory) {
        _runtime.metrics.busy_rejections.add(_server._options.name);
        co_return std::unexpected(std::move(memory.error()));
    }
    j.memory = std::move(*memory);
    co_await encourage(j);
    j.body.clear();
    j.body.reserve(length);
    while (j.body.size() < length) {
        const auto piece = unread().substr(0, length - j.body.size());
        j.body += piece;
        _input.trim_front(piece.size());
        if (j.body.size() < length) {
            if (auto more = co_await more_input(j); !more) {
                co_return more;
            }
        }
    }
    j.req.body = j.body;
    co_return result<void>{};
}

ss::future<result<void>> connection::read_chunked(job& j) {
    http::chunked_decoder decoder(_conf->http.body_max_bytes);
    co_await encourage(j);
    j.body.clear();
    while (true) {
        const auto step = decoder.next(unread());
        if (step.state == http::parse_state::failed) {
            co_return std::unexpected(step.problem);
        }
        if (const uint64_t wanted = j.body.size() + step.data.size() + decoder.announced();
            wanted > j.memory.amount()) {
            auto memory = _runtime.admit.admit_body(_permit, wanted - j.memory.amount());
            if (!memory) {
                _runtime.metrics.busy_rejections.add(_server._options.name);
                co_return std::unexpected(std::move(memory.error()));
            }
            j.memory.merge(std::move(*memory));
        }
        j.body += step.data;
        _input.trim_front(step.consumed);
        if (step.state == http::parse_state::done) {
            j.req.body = j.body;
            co_return result<void>{};
        }
        if (_input.empty()) {
            if (auto more = co_await more_input(j); !more) {
                co_return more;
            }
        }
    }
}

// A client that asked first is told to go on, once nothing speaks against its body.
ss::future<> connection::encourage(job& j) {
    if (j.req.head.expect_continue && _input.empty()) {
        co_await flush();
        co_await put("HTTP/1.1 100 Continue\r\n\r\n");
        now_doing(activity::reading);
    }
}

// Waits for more of a body. The read timeout begins anew with every 64 KiB, so a trickle does not
// hold the place.
ss::future<result<void>> connection::more_input(job& j) {
    const size_t before = j.body.size() / body_progress_bytes;
    co_await flush();
    if (!co_await fill()) {
        throw std::runtime_error("the client left in the middle of a body");
    }
    if ((j.body.size() + _input.size()) / body_progress_bytes != before) {
        now_doing(activity::reading);
    }
    co_return result<void>{};
}

ss::future<result<void>> connection::unpack(job& j) {
    const http::inflate_limits limits{
        .max_bytes = _conf->http.body_max_bytes, .max_ratio = _conf->http.expansion_max_ratio};
    auto memory = _runtime.admit.admit_body(
        _permit, std::min(limits.max_bytes, j.body.size() * limits.max_ratio));
    if (!memory) {
        _runtime.metrics.busy_rejections.add(_server._options.name);
        co_return std::unexpected(std::move(memory.error()));
    }
    j.memory.merge(std::move(*memory));
    http::inflater inflater(j.req.head.content_coding, j.body, limits);
    for (bool complete = false; !complete;) {
        auto step = inflater.step();
        if (!step) {
            co_return std::unexpected(std::move(step.error()));
        }
        complete = *step;
        co_await ss::coroutine::maybe_yield();
    }
    j.body = std::move(inflater).take();
    j.req.body = j.body;
    if (j.body.size() > j.allowed_body_bytes) {
        co_return fail(errc::forbidden, "caveat body does not hold", "Authorization");
    }
    co_return result<void>{};
}

void connection::answer_job(job& j, result<answer>&& done) {
    if (!done) {
        answer_error(j, std::move(done.error()));
        return;
    }
    auto& r = done->response;
    _closing |= r.close || !j.req.head.keep_alive || _server._draining;
    if (!j.corr_id.empty()) {
        r.headers += fmt::format("X-Corr-ID: {}\r\n", j.corr_id);
    }
    http::append_response(_output, r,
        {.date = _server.date_line(),
            .keep_alive = !_closing,
            .head_only = j.req.head.verb == http::method::head,
            .http_1_0 = j.req.head.http_1_0});
    ++_runtime.requests_total;
    if (j.to) {
        ++j.to->by_class[r.status / 100 % 6];
        j.to->latency.record(std::chrono::steady_clock::now() - j.began);
    }
    // A large body's memory goes before its permit does.
    j.head_bytes = {};
    if (j.body.capacity() > body_keep_bytes) {
        std::string().swap(j.body); // assigning an empty one would keep the capacity
    }
    _output_memory.merge(std::move(j.memory)); // until it is written
    j.place = {};
}

void connection::answer_error(job& j, error e) {
    if (e.code == errc::busy && j.to && j.place.amount() > 0) {
        _runtime.metrics.busy_rejections.add(j.to->pattern);
    }
    if (j.corr_id.empty()) {
        j.corr_id = fmt::format("{:016x}", _runtime.random());
    }
    auto response = http::error_response(e, j.corr_id);
    if (e.code == errc::method_not_allowed) {
        response.headers += fmt::format("Allow: {}\r\n", _server.routes.allowed(j.req.head.path));
    }
    answer_job(j, answer{std::move(response), nullptr});
    j.corr_id.clear();
}

// Answers everything that is owed, in order.
ss::future<> connection::settle() {
    while (!_owed.empty()) {
        now_doing(activity::working);
        // Out of the queue first: whatever happens to the answer, nobody waits for this job again.
        auto front = std::move(_owed.front());
        _owed.pop_front();
        auto& j = *front;
        result<answer> done = fail(errc::internal, "the handler failed");
        try {
            done = co_await std::move(*j.pending);
        } catch (...) {
            static thread_local ss::logger::rate_limit limit(std::chrono::seconds(1));
            edge_log.log(ss::log_level::error, limit, "{} {}: {}", name(j.req.head.verb),
                j.to->pattern, std::current_exception());
        }
        j.pending.reset();
        if (done && done->events) {
            co_await stream(j, std::move(done->events));
        } else {
            answer_job(j, std::move(done));
        }
        _spare = std::move(front);
        if (_output.size() > output_flush_bytes) {
            co_await flush();
        }
    }
}

ss::future<> connection::flush() {
    if (_output.empty()) {
        co_return;
    }
    const auto before = _doing;
    co_await put(_output);
    _output.clear();
    _output_memory = {};
    if (_output.capacity() > output_keep_bytes) {
        _output.shrink_to_fit();
    }
    if (before == activity::reading) {
        now_doing(activity::reading);
    }
}

// Writes bytes that stay where they are until the future resolves; so nothing is copied.
ss::future<> connection::put(std::string_view bytes) {
    now_doing(activity::writing);
    // The sink only reads; temporary_buffer has no const form.
    return _sink
        .put(ss::temporary_buffer<char>(
            const_cast<char*>(bytes.data()), bytes.size(), ss::deleter()))
        .then([this] { return _sink.flush(); });
}

ss::future<> connection::stream(job& j, std::unique_ptr<event_source> events) {
    _closing = true;
    const auto limit = _conf->http.sse_subscribers_max / ss::smp::count + 1;
    if (_server._sse_subscribers >= limit) {
        answer_error(j, error{errc::busy, "too many subscribers"});
        events->close();
        co_return;
    }
    http::append_stream_head(_output, "text/event-stream", _server.date_line());
    if (j.req.head.verb == http::method::head) {
        events->close();
        co_return;
    }
    j.place = {};
    ++_server._sse_subscribers;
    _events = events.get();
    auto watcher = watch_for_end(*events);
    std::exception_ptr failed;
    try {
        co_await flush();
        while (!events->ended() && !_server._draining) {
            now_doing(activity::streaming);
            auto data = co_await events->next(deadline::in(heartbeat));
            if (events->behind() > _conf->http.sse_queue_max) {
                ++_server._sse_dropped;
                break;
            }
            if (data) {
                append_event(_output, *data);
            } else if (!events->ended()) {
                _output += ": still here\n\n";
            }
            co_await flush();
        }
    } catch (...) {
        failed = std::current_exception();
    }
    _events = nullptr;
    --_server._sse_subscribers;
    _server._sse_dropped +=
        _timed_out ? 1 : 0; // it took nothing for so long that the write timed out
    events->close();
    cut_off();
    co_await std::move(watcher);
    if (failed) {
        std::rethrow_exception(failed);
    }
}

// A client that leaves ends its subscription; what it sends is thrown away.
ss::future<> connection::watch_for_end(event_source& events) {
    try {
        while (true) {
            const auto bytes = co_await _in.get();
            if (bytes.empty()) {
                break;
            }
        }
    } catch (...) {
        edge_log.debug("a subscriber left: {}", std::current_exception());
    }
    events.close();
}

// An answer that is followed by a reset may never be read: tell the client that we are done, then
// let it finish.
ss::future<> connection::linger() {
    _socket.shutdown_output();
    now_doing(activity::lingering);
    for (size_t thrown_away = 0; thrown_away < linger_bytes;) {
        const auto bytes = co_await _in.get();
        if (bytes.empty()) {
            break;
        }
        thrown_away += bytes.size();
    }
}

} // namespace tidepool
