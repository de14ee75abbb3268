// The runner of the tests that need a reactor.
#define SEASTAR_TESTING_MAIN
#include <seastar/testing/seastar_test.hh>
