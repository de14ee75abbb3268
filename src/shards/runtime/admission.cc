#include "shards/runtime/admission.hh"

namespace tidepool {

namespace {

uint64_t part(uint64_t limit) {
    return (limit + ss::smp::count - 1) / ss::smp::count;
}

admission_config parts(const admission_config& c) {
    return {.connections_max = part(c.connections_max),
        .connections_per_ip_max = part(c.connections_per_ip_max),
        .inflight_max = part(c.inflight_max),
        .requests_per_s = part(c.requests_per_s),
        .requests_per_s_per_ip = part(c.requests_per_s_per_ip),
        .bytes_per_s = part(c.bytes_per_s),
        .bytes_per_s_per_ip = part(c.bytes_per_s_per_ip),
        .memory_max_bytes = part(c.memory_max_bytes)};
}

// One second's worth may come at once.
void set(token_bucket& bucket, uint64_t rate) {
    bucket.set_rate(
        static_cast<double>(rate), static_cast<double>(rate), std::chrono::steady_clock::now());
}

} // namespace

admission::admission(const admission_config& c, runtime_metrics& metrics) : _metrics(metrics) {
    configure(c);
}

admission::~admission() {
    _idle.clear();
}

void admission::configure(const admission_config& c) {
    assert_owner();
    _limits = parts(c);
    _rated = c.requests_per_s || c.requests_per_s_per_ip || c.bytes_per_s || c.bytes_per_s_per_ip;
    set(_requests, _limits.requests_per_s);
    set(_bytes, _limits.bytes_per_s);
    for (auto& [address, row] : _clients) {
        set(row.requests, _limits.requests_per_s_per_ip);
        set(row.bytes, _limits.bytes_per_s_per_ip);
    }
}

std::unexpected<error> admission::refuse(
    std::string_view kind, std::string_view what, std::chrono::seconds wait) {
    _metrics.quota_reject.add(kind);
    return std::unexpected(error{errc::busy, std::string(what), {}, wait});
}

result<admission::connection_permit> admission::admit_connection(
    const ss::net::inet_address& address) {
    assert_owner();
    if (_connections >= _limits.connections_max) {
        return refuse("connections", "too many connections");
    }
    auto& row = client_at(address);
    if (row.connections >= _limits.connections_per_ip_max) {
        return refuse("connections_per_ip", "too many connections from this address");
    }
    ++_connections;
    if (++row.connections == 1 && row.is_linked()) {
        _idle.erase(_idle.iterator_to(row));
    }
    return connection_permit(*this, row);
}

admission::connection_permit::~connection_permit() {
    if (_home) {
        _home->left(*_client);
    }
}

admission::client& admission::client_at(const ss::net::inet_address& address) {
    const auto [found, fresh] = _clients.try_emplace(address);
    auto& row = found->second;
    if (fresh) {
        row.address = address;
        set(row.requests, _limits.requests_per_s_per_ip);
        set(row.bytes, _limits.bytes_per_s_per_ip);
        _idle.push_back(row);
    }
    return row;
}

void admission::left(client& row) noexcept {
    --_connections;
    if (--row.connections == 0) {
        _idle.push_back(row);
        forget_oldest();
    }
}

void admission::forget_oldest() noexcept {
    while (_idle.size() > idle_clients_max) {
        auto& oldest = _idle.front();
        _idle.pop_front();
        _clients.erase(_clients.find(oldest.address));
    }
}

result<void> admission::take_rate(client& row, double requests, double bytes) {
    if (!_rated) {
        return {};
    }
    const auto now = std::chrono::steady_clock::now();
    if (requests > 0 && !row.requests.try_take(requests, now)) {
        return refuse("requests_per_ip", "too many requests from this address",
            row.requests.wait_for(requests));
    }
    if (requests > 0 && !_requests.try_take(requests, now)) {
        return refuse("requests", "too many requests", _requests.wait_for(requests));
    }
    // A body may be larger than a second's worth: it passes when any bytes are left, and leaves a
    // debt.
    if (bytes > 0 && !row.bytes.try_take(1, now)) {
        return refuse(
            "bytes_per_ip", "too many bytes from this address", row.bytes.wait_for(bytes));
    }
    if (bytes > 0 && !_bytes.try_take(1, now)) {
        return refuse("bytes", "too many bytes", _bytes.wait_for(bytes));
    }
    row.bytes.charge(bytes, now);
    _bytes.charge(bytes, now);
    return {};
}

result<admission::count_permit> admission::admit_request(
    connection_permit& connection, uint64_t bytes) {
    assert_owner();
    if (_inflight >= _limits.inflight_max) {
        return refuse("inflight", "too many requests in flight");
    }
    if (auto rate = take_rate(*connection._client, 1, static_cast<double>(bytes)); !rate) {
        return std::unexpected(std::move(rate.error()));
    }
    return count_permit(_inflight, 1);
}

result<admission::count_permit> admission::admit_memory(uint64_t bytes) {
    assert_owner();
    if (bytes > _limits.memory_max_bytes - std::min(_memory, _limits.memory_max_bytes)) {
        return refuse("memory", "no memory for another request");
    }
    return count_permit(_memory, bytes);
}

result<admission::count_permit> admission::admit_body(
    connection_permit& connection, uint64_t bytes) {
    auto memory = admit_memory(bytes);
    if (!memory) {
        return memory;
    }
    if (auto rate = take_rate(*connection._client, 0, static_cast<double>(bytes)); !rate) {
        return std::unexpected(std::move(rate.error()));
    }
    return memory;
}

} // namespace tidepool
