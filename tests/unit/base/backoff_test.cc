#include "shards/base/backoff.hh"

#include "../seed.hh"

#include <boost/test/unit_test.hpp>
#include <set>

using namespace tidepool;
using namespace std::chrono_literals;

namespace {

void check_bounds(const backoff_policy& policy, random_source& random) {
    backoff wait(policy);
    for (unsigned n = 0; n < policy.attempts; ++n) {
        BOOST_TEST(wait.used() == n);
        const auto delay = wait.next(random);
        BOOST_TEST_REQUIRE(delay.has_value());
        const auto doubled = policy.first_ms * (int64_t(1) << n);
        BOOST_TEST(delay->count() >= std::min(doubled, policy.max_ms).count());
        BOOST_TEST(delay->count() <= std::min(2 * doubled, policy.max_ms).count());
    }
    BOOST_TEST(!wait.next(random).has_value());
    BOOST_TEST(!wait.next(random).has_value());
}

} // namespace

BOOST_AUTO_TEST_SUITE(backoffs)

BOOST_AUTO_TEST_CASE(calls_wait_50_to_100_ms_then_double) {
    auto random = test::random_for("backoffs/calls");
    for (int round = 0; round < 1'000; ++round) {
        backoff wait(call_backoff);
        for (const int64_t least : {50, 100, 200}) {
            const auto delay = wait.next(random).value().count();
            BOOST_TEST(delay >= least);
            BOOST_TEST(delay <= 2 * least);
        }
        BOOST_TEST(!wait.next(random).has_value());
    }
    BOOST_TEST((call_backoff.max_ms == 2s));
}

BOOST_AUTO_TEST_CASE(every_policy_keeps_its_bounds) {
    auto random = test::random_for("backoffs/every_policy");
    for (int round = 0; round < 200; ++round) {
        check_bounds(call_backoff, random);
        check_bounds(connection_backoff, random);
        check_bounds(fiber_backoff, random);
        check_bounds({50ms, 2'000ms, 12}, random);
    }
}

BOOST_AUTO_TEST_CASE(many_attempts_stay_at_the_cap) {
    auto random = test::random_for("backoffs/many_attempts");
    backoff wait({1'000ms, 60'000ms, 200});
    for (int n = 0; n < 200; ++n) {
        const auto delay = wait.next(random).value();
        BOOST_TEST(delay.count() > 0);
        BOOST_TEST(delay.count() <= 60'000);
        BOOST_TEST((n < 6 || delay == 60'000ms), n);
    }
}

BOOST_AUTO_TEST_CASE(reset_begins_again) {
    auto random = test::random_for("backoffs/reset");
    backoff wait(call_backoff);
    while (wait.next(random)) {
    }
    wait.reset();
    BOOST_TEST(wait.used() == 0u);
    const auto delay = wait.next(random).value();
    BOOST_TEST((delay >= 50ms && delay <= 100ms));
}

BOOST_AUTO_TEST_CASE(delays_are_spread_out) {
    auto random = test::random_for("backoffs/spread");
    std::set<int64_t> seen;
    for (int round = 0; round < 2'000; ++round) {
        seen.insert(backoff(call_backoff).next(random)->count());
    }
    BOOST_TEST(seen.size() > 45u);
    BOOST_TEST(*seen.begin() <= 52);
    BOOST_TEST(*seen.rbegin() >= 98);
}

BOOST_AUTO_TEST_SUITE_END()
