// The configuration of a running node: an immutable snapshot on each core. A reader takes the
// snapshot once and sees one version throughout, across any number of suspensions; a reload never
// changes a snapshot that someone holds.
//
// Reload, on core 0: read and check the file; stage a complete copy on every core; then switch
// every core. If anything fails before the switch, nothing has changed anywhere.
// tests/models/config_swap.pml checks the protocol.
#pragma once

#include "shards/runtime/config/load.hh"
#include "shards/runtime/owner.hh"

#include <functional>
#include <seastar/core/future.hh>
#include <seastar/core/shared_ptr.hh>
#include <vector>

namespace tidepool {

using config_snapshot = ss::lw_shared_ptr<const config>;

class config_store : public owned {
public:
    using listener = std::function<void(const config&)>;

    explicit config_store(const config& initial)
        : _current(ss::make_lw_shared<const config>(initial)) {}

    const config_snapshot& snapshot() const noexcept { return _current; }
    // For a single read that does not outlive the statement.
    const config& operator*() const noexcept { return *_current; }
    const config* operator->() const noexcept { return _current.get(); }
    uint64_t version() const noexcept { return _version; }

    // Called on this core right after each switch, in order of registration.
    void on_change(listener l) { _listeners.push_back(std::move(l)); }

    void stage(const config& next) { _staged = ss::make_lw_shared<const config>(next); }
    void drop_staged() noexcept { _staged = nullptr; }
    // Does not allocate, so that it cannot fail half-way through the cores.
    void switch_to_staged() noexcept;

private:
    config_snapshot _current;
    config_snapshot _staged;
    uint64_t _version = 1;
    std::vector<listener> _listeners;
};

} // namespace tidepool
