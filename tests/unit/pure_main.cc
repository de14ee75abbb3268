#define BOOST_TEST_MODULE tidepool_pure
#include <boost/test/unit_test.hpp>

#include "seed.hh"

#include <cstdio>

// Printed even where messages are not shown, so that every failure can be run again.
struct print_seed {
    print_seed() { std::printf("TIDEPOOL_TEST_SEED=%ju\n", uintmax_t(tidepool::test::run_seed())); }
};
BOOST_TEST_GLOBAL_FIXTURE(print_seed);
