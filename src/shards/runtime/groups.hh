// Who gets how much: CPU by scheduling group, hops between cores by service group.
#pragma once

#include "shards/base/ss.hh"
#include "shards/runtime/config/config.hh"

#include <array>
#include <cstdint>
#include <seastar/core/future.hh>
#include <seastar/core/scheduling.hh>
#include <seastar/core/smp.hh>

namespace tidepool {

// The scheduling groups, the same on every core. Made once, at start.
struct scheduling_groups {
    ss::scheduling_group ops;
    ss::scheduling_group edge;
    ss::scheduling_group lookup;
    ss::scheduling_group gossip;
    ss::scheduling_group commit;
    ss::scheduling_group feed;
    ss::scheduling_group crypto;
    ss::scheduling_group background;

    static ss::future<scheduling_groups> create(const groups_config&);
    // On each core, after a reload.
    void set_shares(const groups_config&);
    ss::future<> destroy();
};

// The levels of calls between cores. A handler may only call on a later level, so two cores can
// never wait for each other: request -> derived -> background. `reply` carries answers back; its
// handlers never wait at all.
enum class hop_level : uint8_t { request, derived, background, reply };

// Seastar's limit for a group is split evenly over the other cores; `share` is what one sender gets
// towards one receiver. Mailboxes reserve their credits from it when they are made, so credits
// never exceed it.
class hop_groups {
public:
    // 16 mailboxes of the largest capacity (8192) on a level; a semaphore's count costs nothing.
    static constexpr unsigned share = 16 * 8'192;

    static ss::future<hop_groups> create();
    ss::future<> destroy();
    ss::smp_service_group at(hop_level level) const { return _groups[static_cast<size_t>(level)]; }

private:
    std::array<ss::smp_service_group, 4> _groups{ss::default_smp_service_group(),
        ss::default_smp_service_group(), ss::default_smp_service_group(),
        ss::default_smp_service_group()};
};

// One core's view of what the mailboxes took of each level's share.
class hop_budget {
    std::array<unsigned, 4> _used{};

public:
    // Throws (at start-up) when a level has no room for another `credits` towards each core.
    void reserve(hop_level, unsigned credits);
    void release(hop_level level, unsigned credits) noexcept {
        _used[static_cast<size_t>(level)] -= credits;
    }
};

} // namespace tidepool
