#include "shards/runtime/groups.hh"

#include <fmt/format.h>
#include <seastar/core/coroutine.hh>
#include <seastar/core/reactor.hh>
#include <stdexcept>
#include <utility>

namespace tidepool {

namespace {

// Every group with its shares: one list for making, changing and removing them.
template <typename Groups>
auto each(Groups& g, const groups_config& c) {
    using group = std::conditional_t<std::is_const_v<Groups>, const ss::scheduling_group,
        ss::scheduling_group>;
    struct row {
        const char* name;
        group& sg;
        uint64_t shares;
    };
    return std::array<row, 8>{{{"ops", g.ops, c.ops_shares}, {"edge", g.edge, c.edge_shares},
        {"lookup", g.lookup, c.lookup_shares}, {"gossip", g.gossip, c.gossip_shares},
        {"commit", g.commit, c.commit_shares}, {"feed", g.feed, c.feed_shares},
        {"crypto", g.crypto, c.crypto_shares}, {"background", g.background, c.background_shares}}};
}

} // namespace

ss::future<scheduling_groups> scheduling_groups::create(const groups_config& c) {
    scheduling_groups g;
    for (const auto& row : each(g, c)) {
        row.sg = co_await ss::create_scheduling_group(row.name, static_cast<float>(row.shares));
    }
    co_return g;
}

void scheduling_groups::set_shares(const groups_config& c) {
    for (const auto& row : each(*this, c)) {
        row.sg.set_shares(static_cast<float>(row.shares));
    }
}

ss::future<> scheduling_groups::destroy() {
    for (const auto& row : each(*this, groups_config{})) {
        co_await ss::destroy_scheduling_group(row.sg);
    }
}

ss::future<hop_groups> hop_groups::create() {
    constexpr std::array<const char*, 4> names{"request", "derived", "background", "reply"};
    hop_groups out;
    const unsigned others = std::max(1U, ss::smp::count - 1);
    for (size_t i = 0; i < names.size(); ++i) {
        ss::smp_service_group_config config;
        config.max_nonlocal_requests = share * others;
        config.group_name = names[i];
        out._groups[i] = co_await ss::create_smp_service_group(config);
    }
    co_return out;
}

ss::future<> hop_groups::destroy() {
    for (auto group : _groups) {
        co_await ss::destroy_smp_service_group(group);
    }
}

void hop_budget::reserve(hop_level level, unsigned credits) {
    auto& used = _used[static_cast<size_t>(level)];
    if (used + credits > hop_groups::share) {
        throw std::runtime_error(
            fmt::format("mailboxes of level {} want {} credits a pair of cores; {} is the most",
                std::to_underlying(level), used + credits, hop_groups::share));
    }
    used += credits;
}

} // namespace tidepool
