// One seed for all randomised tests of a run: TIDEPOOL_TEST_SEED where it is set, else drawn. It is
// printed, so that a failure can be run again.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace tidepool::test {

using random_engine = std::mt19937_64;

uint64_t run_seed();

// A stream of its own for every test, so that one test alone draws the same numbers as in a full
// run.
random_engine random_for(std::string_view test_name);

inline uint64_t draw(random_engine& random, uint64_t least, uint64_t most) {
    return std::uniform_int_distribution<uint64_t>(least, most)(random);
}

std::string random_bytes(random_engine&, size_t size);

// The same bytes in pieces of at least one byte.
std::vector<std::string_view> random_pieces(random_engine&, std::string_view bytes);

} // namespace tidepool::test
