// Capabilities: macaroons whose caveats are "name=value". Anyone who holds one can add caveats,
// nobody can take one away. Verification is pure: what the request is and what time it is come in,
// a grant or a refusal comes out.
//
//   expires=UNIX  not-before=UNIX  audience=NODE  method=GET,PUT  path=/v1/echo  account=PREFIX
//   body=BYTES  rate=N
//
// All caveats must hold; several of a kind narrow each other. A caveat that is not in this list
// denies.
#pragma once

#include "proto/base/errc.hh"
#include "proto/cap/keyring.hh"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidepool::cap {

inline constexpr size_t token_max_bytes = 4'096;

struct request_facts {
    std::string_view method;
    std::string_view path;
    std::optional<std::string_view> account; // where the request names one
    uint64_t body_bytes = 0;                 // announced, or the limit if unknown
    std::string_view audience;               // this node's name
    int64_t now_unix_s = 0;
};

struct grant {
    uint64_t token_hash = 0;                   // which token, for its rate bucket
    std::optional<uint64_t> rate_per_s;        // the lowest of its rate caveats
    std::vector<std::string> account_prefixes; // all must match, where the account is known later
    std::optional<uint64_t> body_max_bytes;
};

// 401 for a token that is malformed, forged or of an unknown key; 403 naming the caveat that does
// not hold.
result<grant> verify(const keyring&, std::string_view token, const request_facts&);

// A new token of the key `key_id`. Caveats are checked for form.
result<std::string> mint(
    const keyring&, std::string_view key_id, const std::vector<std::string>& caveats);

// The same token with more caveats. Needs no key.
result<std::string> attenuate(std::string_view token, const std::vector<std::string>& caveats);

struct token_info {
    std::string key_id;
    std::vector<std::string> caveats;
};

result<token_info> inspect(std::string_view token);

// What is wrong with a caveat's form, if anything.
std::optional<std::string> caveat_problem(std::string_view caveat);

} // namespace tidepool::cap
