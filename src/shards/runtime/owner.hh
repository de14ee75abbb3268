// Who may write what. `owned` remembers the core that made it; mutating methods begin with
// assert_owner(), in every build: one compare.
#pragma once

#include "proto/base/hash.hh"
#include "shards/base/ss.hh"
#include "shards/runtime/logger.hh"

#include <seastar/core/on_internal_error.hh>
#include <seastar/core/smp.hh>

namespace tidepool {

class owned {
    ss::shard_id _owner = ss::this_shard_id();

public:
    ss::shard_id owner() const noexcept { return _owner; }

    // A breach is a bug of ours: the node aborts on it (tests see an exception).
    void assert_owner() const {
        if (ss::this_shard_id() != _owner) [[unlikely]] {
            ss::on_internal_error(runtime_log,
                fmt::format("core {} touched what core {} owns", ss::this_shard_id(), _owner));
        }
    }
};

// The core that owns a key. Multiplying instead of dividing: even, and no bias towards low cores.
inline ss::shard_id owner_of(uint64_t hash, unsigned cores = ss::smp::count) noexcept {
    return static_cast<ss::shard_id>((static_cast<unsigned __int128>(hash) * cores) >> 64);
}

inline ss::shard_id owner_of(std::string_view key) noexcept {
    return owner_of(hash64(key));
}

} // namespace tidepool
