// A cell inside one core that holds the latest value: a write replaces, a reader that comes late
// sees only the last. For shutdown and configuration signals, where nobody wants the history.
#pragma once

#include "shards/runtime/owner.hh"
#include "shards/runtime/queue_registry.hh"

#include <seastar/core/condition-variable.hh>
#include <seastar/core/coroutine.hh>

namespace tidepool {

template <typename T>
class latest_cell : public owned {
    registered_queue _registered;
    T _value;
    uint64_t _version = 0;
    uint64_t _seen = 0;
    ss::condition_variable _changed;

public:
    latest_cell(const queue_spec& spec, queue_registry& registry, T initial = {})
        : _registered(spec, 1, registry), _value(std::move(initial)) {}

    const T& get() const noexcept { return _value; }
    uint64_t version() const noexcept { return _version; }
    const queue_counts& counts() const noexcept { return _registered.counts; }

    void set(T value) {
        assert_owner();
        auto& counts = _registered.counts;
        // A value that nobody saw before it was replaced was dropped; that is the policy, and it is
        // counted.
        counts.dropped += counts.depth;
        counts.depth = 1;
        ++counts.accepted;
        _value = std::move(value);
        ++_version;
        _changed.broadcast();
    }

    // Waits for a value newer than `version` and returns its version; get() has it.
    ss::future<uint64_t> newer_than(uint64_t version) {
        co_await _changed.wait([this, version] { return _version > version; });
        if (_version > _seen) {
            _seen = _version;
            ++_registered.counts.done;
            _registered.counts.depth = 0;
        }
        co_return _version;
    }

    // Waits that are under way end with broken_condition_variable.
    void close() noexcept { _changed.broken(); }
};

} // namespace tidepool
