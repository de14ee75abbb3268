// A small, fast, seeded 64-bit hash for placing keys on cores. Not for anything an adversary should
// not predict: placement is public, and a hot core is handled by admission, not by secrecy.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace tidepool {

// The finaliser of splitmix64: every input bit reaches every output bit.
constexpr uint64_t mix64(uint64_t x) noexcept {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ULL;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

inline uint64_t hash64(std::string_view bytes, uint64_t seed = 0) noexcept {
    uint64_t h = mix64(seed ^ (bytes.size() * 0x9e3779b97f4a7c15ULL));
    while (bytes.size() >= 8) {
        uint64_t word;
        std::memcpy(&word, bytes.data(), 8);
        h = mix64(h ^ word) + 0x9e3779b97f4a7c15ULL;
        bytes.remove_prefix(8);
    }
    uint64_t tail = 0;
    if (!bytes.empty()) {
        std::memcpy(&tail, bytes.data(), bytes.size());
    }
    return mix64(h ^ tail);
}

} // namespace tidepool
