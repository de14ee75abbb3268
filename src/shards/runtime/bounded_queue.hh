// A bounded queue inside one core: any fiber may push, one fiber pops. Never grows past its
// capacity; what happens when it is full is in its declaration.
#pragma once

#include "proto/base/errc.hh"
#include "shards/base/ring.hh"
#include "shards/runtime/deadline.hh"
#include "shards/runtime/owner.hh"
#include "shards/runtime/queue_registry.hh"

#include <optional>
#include <seastar/core/condition-variable.hh>
#include <seastar/core/coroutine.hh>

namespace tidepool {

template <typename T>
class bounded_queue : public owned {
    registered_queue _registered;
    ring<T> _items;
    bool _closed = false;
    ss::condition_variable _not_empty;
    ss::condition_variable _not_full;

public:
    bounded_queue(const queue_spec& spec, size_t capacity, queue_registry& registry)
        : _registered(spec, capacity, registry), _items(capacity) {}

    const queue_counts& counts() const noexcept { return _registered.counts; }

    // Full: refuses with `busy`, or pushes the oldest out, as declared.
    result<void> push(T item) {
        assert_owner();
        auto& counts = _registered.counts;
        if (_closed) {
            ++counts.canceled;
            return fail(errc::canceled);
        }
        if (_items.full()) {
            if (_registered.spec.policy != overflow::drop_oldest) {
                ++counts.refused;
                return fail(errc::busy, fmt::format("queue {} is full", _registered.spec.name));
            }
            _items.pop();
            ++counts.dropped;
        }
        _items.push(std::move(item));
        ++counts.accepted;
        counts.depth = _items.size();
        _not_empty.signal();
        return {};
    }

    // Waits for a place until the deadline.
    ss::future<result<void>> push_until(T item, deadline until) {
        assert_owner();
        try {
            co_await _not_full.wait(until.at(), [this] { return _closed || !_items.full(); });
        } catch (const ss::condition_variable_timed_out&) {
            ++_registered.counts.timed_out;
            co_return fail(
                errc::timeout, fmt::format("queue {} stayed full", _registered.spec.name));
        }
        co_return push(std::move(item));
    }

    // The oldest item; nothing when the queue is closed and empty.
    ss::future<std::optional<T>> pop() {
        assert_owner();
        co_await _not_empty.wait([this] { return _closed || !_items.empty(); });
        if (_items.empty()) {
            co_return std::nullopt;
        }
        auto& counts = _registered.counts;
        std::optional<T> item(_items.pop());
        ++counts.done;
        counts.depth = _items.size();
        _not_full.signal();
        co_return item;
    }

    // No more pushes; what is in it can still be popped.
    void close() noexcept {
        _closed = true;
        _not_empty.broadcast();
        _not_full.broadcast();
    }

    // Throws away what is left, and counts it.
    void abort() noexcept {
        close();
        auto& counts = _registered.counts;
        counts.aborted += _items.size();
        while (!_items.empty()) {
            _items.pop();
        }
        counts.depth = 0;
    }
};

} // namespace tidepool
