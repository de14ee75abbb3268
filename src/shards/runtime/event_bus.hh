// Broadcast inside one core: every subscriber sees every event, each at its own pace. The last 1024
// events are kept; a subscriber that falls further behind loses the oldest, is told how many, and
// nobody waits for it.
#pragma once

#include "shards/runtime/deadline.hh"
#include "shards/runtime/logger.hh"
#include "shards/runtime/owner.hh"
#include "shards/runtime/queue_registry.hh"

#include <boost/intrusive/list.hpp>
#include <optional>
#include <seastar/core/condition-variable.hh>
#include <seastar/core/coroutine.hh>
#include <seastar/core/metrics.hh>
#include <vector>

namespace tidepool {

template <typename Event>
class event_bus : public owned {
    registered_queue _registered;
    std::vector<std::optional<Event>> _slots;
    uint64_t _next = 0; // sequence number of the next event
    uint64_t _lagged = 0;
    ss::logger::rate_limit _warning{std::chrono::seconds(5)};
    ss::metrics::metric_groups _metrics;

public:
    static constexpr size_t default_capacity = 1'024;

    class subscription : public boost::intrusive::list_base_hook<> {
        event_bus& _bus;
        uint64_t _cursor;
        uint64_t _lagged = 0;
        bool _closed = false;
        ss::condition_variable _news;
        friend class event_bus;

    public:
        explicit subscription(event_bus& bus) : _bus(bus), _cursor(bus._next) {
            bus._subscribers.push_back(*this);
        }
        ~subscription() { _bus._subscribers.erase(_bus._subscribers.iterator_to(*this)); }
        subscription(const subscription&) = delete;
        subscription& operator=(const subscription&) = delete;

        // The next event; nothing when closed or when `until` passes first. Must not be destroyed
        // while someone waits in here: close() first.
        ss::future<std::optional<Event>> next(deadline until = {}) {
            try {
                co_await _news.wait(until.at(), [this] { return _closed || _cursor < _bus._next; });
            } catch (const ss::condition_variable_timed_out&) {
                co_return std::nullopt;
            }
            if (_closed) {
                co_return std::nullopt;
            }
            catch_up();
            auto event = _bus._slots[_cursor % _bus._slots.size()];
            ++_cursor;
            co_return event;
        }
        bool closed() const noexcept { return _closed; }

        // Events lost so far, and how far behind the newest this one is.
        uint64_t lagged() const noexcept { return _lagged; }
        uint64_t behind() const noexcept { return _bus._next - _cursor; }

        void close() noexcept {
            _closed = true;
            _news.broadcast();
        }

    private:
        void catch_up() {
            const uint64_t kept = _bus._slots.size();
            if (_bus._next - _cursor > kept) {
                const uint64_t lost = _bus._next - _cursor - kept;
                _cursor += lost;
                _lagged += lost;
                _bus.count_lag(lost);
            }
        }
    };

    event_bus(const queue_spec& spec, queue_registry& registry, size_t capacity = default_capacity)
        : _registered(spec, capacity, registry), _slots(capacity) {
        namespace sm = ss::metrics;
        _metrics.add_group("bus", {sm::make_counter("lagged_total", [this] { return _lagged; },
                                      sm::description("Events that slow subscribers lost"),
                                      {sm::label("bus")(std::string(spec.name))})});
    }

    void publish(Event event) {
        assert_owner();
        _slots[_next % _slots.size()] = std::move(event);
        ++_next;
        ++_registered.counts.accepted;
        ++_registered.counts.done;
        for (auto& s : _subscribers) {
            s._news.signal();
        }
    }

    size_t subscribers() const noexcept { return _subscribers.size(); }
    uint64_t lagged() const noexcept { return _lagged; }

    // Ends every subscription: waiting next() calls return nothing.
    void close() noexcept {
        for (auto& s : _subscribers) {
            s.close();
        }
    }

private:
    boost::intrusive::list<subscription> _subscribers;

    void count_lag(uint64_t lost) {
        _lagged += lost;
        _registered.counts.dropped += lost;
        runtime_log.log(ss::log_level::warn, _warning, "bus {}: a slow subscriber lost {} events",
            _registered.spec.name, lost);
    }
};

} // namespace tidepool
