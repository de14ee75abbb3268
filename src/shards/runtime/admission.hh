// Admission: what the node takes on, decided on the accepting core before anything is read, queued
// or sent on.
//
// Node-wide limits are split evenly over the cores (rounded up), because connections are dealt out
// evenly and a shared counter would be the one thing all cores write. So a limit of 256 on two
// cores is 128 on each.
#pragma once

#include "proto/base/errc.hh"
#include "shards/base/token_bucket.hh"
#include "shards/runtime/config/config.hh"
#include "shards/runtime/metrics.hh"
#include "shards/runtime/owner.hh"

#include <boost/intrusive/list.hpp>
#include <seastar/net/inet_address.hh>
#include <unordered_map>

namespace tidepool {

class admission : public owned {
    struct client : public boost::intrusive::list_base_hook<> {
        ss::net::inet_address address;
        unsigned connections = 0;
        token_bucket requests{0, 0};
        token_bucket bytes{0, 0};
    };

public:
    // A place that gives itself back. Which count it stands for is in the pointers.
    template <typename Count>
    class permit {
        Count* _count = nullptr;
        uint64_t _amount = 0;

    public:
        permit() = default;
        permit(Count& count, uint64_t amount) : _count(&count), _amount(amount) { count += amount; }
        permit(permit&& other) noexcept
            : _count(std::exchange(other._count, nullptr)),
              _amount(std::exchange(other._amount, 0)) {}
        permit& operator=(permit&& other) noexcept {
            std::swap(_count, other._count);
            std::swap(_amount, other._amount);
            return *this;
        }
        ~permit() {
            if (_count) {
                *_count -= _amount;
            }
        }
        uint64_t amount() const noexcept { return _amount; }
        // Takes over what `more` holds.
        void merge(permit&& more) noexcept {
            _count = _count ? _count : more._count;
            _amount += std::exchange(more._amount, 0);
            more._count = nullptr;
        }
    };
    using count_permit = permit<uint64_t>;

    // A connection's place, and the address behind it.
    class connection_permit {
        admission* _home = nullptr;
        client* _client = nullptr;
        friend class admission;

    public:
        connection_permit() = default;
        connection_permit(admission& home, client& c) : _home(&home), _client(&c) {}
        connection_permit(connection_permit&& other) noexcept
            : _home(std::exchange(other._home, nullptr)),
              _client(std::exchange(other._client, nullptr)) {}
        connection_permit& operator=(connection_permit&& other) noexcept {
            std::swap(_home, other._home);
            std::swap(_client, other._client);
            return *this;
        }
        ~connection_permit();
    };

    admission(const admission_config&, runtime_metrics&);
    ~admission();

    void configure(const admission_config&);

    result<connection_permit> admit_connection(const ss::net::inet_address&);
    // In-flight place and request rate. `bytes` is what the head took.
    result<count_permit> admit_request(connection_permit&, uint64_t bytes);
    // Memory for `bytes` of an answer that is being made.
    result<count_permit> admit_memory(uint64_t bytes);
    // Memory for `bytes` of a body that is announced, and the byte rate.
    result<count_permit> admit_body(connection_permit&, uint64_t bytes);

    uint64_t connections() const noexcept { return _connections; }
    uint64_t inflight() const noexcept { return _inflight; }
    uint64_t memory() const noexcept { return _memory; }

private:
    // Addresses without a connection are remembered for their rate, this many of them.
    static constexpr size_t idle_clients_max = 4'096;

    admission_config _limits; // this core's part
    runtime_metrics& _metrics;
    uint64_t _connections = 0;
    uint64_t _inflight = 0;
    uint64_t _memory = 0;
    token_bucket _requests{0, 0};
    token_bucket _bytes{0, 0};
    bool _rated = false; // any rate limit at all: otherwise the clock is not read
    std::unordered_map<ss::net::inet_address, client> _clients;
    boost::intrusive::list<client> _idle; // oldest first

    client& client_at(const ss::net::inet_address&);
    void left(client&) noexcept;
    void forget_oldest() noexcept;
    std::unexpected<error> refuse(
        std::string_view kind, std::string_view what, std::chrono::seconds wait = {});
    result<void> take_rate(client&, double requests, double bytes);
};

} // namespace tidepool
