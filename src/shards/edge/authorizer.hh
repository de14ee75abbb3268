// Checks capabilities on the accepting core, before anything is queued. One per core; the key ring
// is replaced whole.
#pragma once

#include "proto/cap/capability.hh"
#include "proto/http/head.hh"
#include "shards/base/token_bucket.hh"
#include "shards/runtime/runtime.hh"

#include <deque>
#include <unordered_map>

namespace tidepool {

class authorizer : public owned {
    // Tokens with a rate that are remembered; the oldest is forgotten first.
    static constexpr size_t rated_tokens_max = 4'096;

    runtime& _runtime;
    cap::keyring _keys;
    std::unordered_map<uint64_t, token_bucket> _rates;
    std::deque<uint64_t> _rate_order;

public:
    explicit authorizer(runtime& r) : _runtime(r) {}

    void set_keys(cap::keyring keys) { _keys = std::move(keys); }

    // Nothing to check when capabilities are not required and none is given; one that is given must
    // be good. The answer is how long a body may be once unpacked.
    result<uint64_t> check(const http::request_head&, std::optional<std::string_view> account,
        uint64_t body_max_bytes);

private:
    result<void> take_rate(uint64_t token, uint64_t rate_per_s);
};

// Reads root keys from a file that only its owner can read. On any core; uses Seastar's file I/O.
ss::future<result<cap::keyring>> read_keyring(std::string path);

} // namespace tidepool
