#include "shards/base/token_bucket.hh"

#include "../seed.hh"

#include <boost/test/unit_test.hpp>

using namespace tidepool;
using namespace std::chrono_literals;

namespace {

const token_bucket::time_point start{1'000s};

unsigned take_all(token_bucket& bucket, token_bucket::time_point now) {
    unsigned taken = 0;
    while (taken < 1'000'000 && bucket.try_take(1, now)) {
        ++taken;
    }
    return taken;
}

} // namespace

BOOST_AUTO_TEST_SUITE(token_buckets)

BOOST_AUTO_TEST_CASE(burst_then_nothing) {
    token_bucket bucket(100, 20);
    BOOST_TEST(take_all(bucket, start) == 20u);
    BOOST_TEST(!bucket.try_take(1, start));
    BOOST_TEST(take_all(bucket, start + 100ms) == 10u);
    // A pause saves up no more than the burst.
    BOOST_TEST(take_all(bucket, start + 1h) == 20u);
}

BOOST_AUTO_TEST_CASE(no_rate_is_no_limit) {
    token_bucket bucket(0, 0);
    for (int i = 0; i < 1'000; ++i) {
        BOOST_TEST_REQUIRE(bucket.try_take(1e9, start));
    }
    bucket.charge(1e9, start);
    BOOST_TEST(bucket.try_take(1, start));
}

BOOST_AUTO_TEST_CASE(rate_over_a_long_time) {
    auto random = test::random_for("token_buckets/rate");
    for (const double rate : {1.0, 7.0, 1'000.0, 33'333.0}) {
        token_bucket bucket(rate, rate / 10 + 1);
        take_all(bucket, start);
        auto now = start;
        uint64_t taken = 0;
        while (now < start + 400s) {
            // Asked far more often than the bucket fills.
            now += std::chrono::microseconds(
                test::draw(random, 1, static_cast<uint64_t>(1e5 / rate) + 1));
            taken += bucket.try_take(1, now) ? 1 : 0;
            if (taken > 200'000) {
                break;
            }
        }
        const double expected = rate * std::chrono::duration<double>(now - start).count();
        BOOST_TEST(static_cast<double>(taken) > expected * 0.99 - 1, rate);
        BOOST_TEST(static_cast<double>(taken) < expected * 1.01 + 1, rate);
    }
}

BOOST_AUTO_TEST_CASE(amounts_count) {
    token_bucket bucket(1'000, 500);
    BOOST_TEST(!bucket.try_take(501, start));
    BOOST_TEST(bucket.try_take(500, start));
    BOOST_TEST(!bucket.try_take(100, start + 99ms));
    BOOST_TEST(bucket.try_take(100, start + 101ms));
}

BOOST_AUTO_TEST_CASE(a_debt_is_paid_off_first) {
    token_bucket bucket(10, 10);
    bucket.charge(30, start);
    BOOST_TEST(!bucket.try_take(1, start + 2s));
    BOOST_TEST(bucket.try_take(1, start + 2'200ms));
}

BOOST_AUTO_TEST_CASE(time_that_goes_back_gives_nothing) {
    token_bucket bucket(10, 10);
    take_all(bucket, start + 10s);
    BOOST_TEST(!bucket.try_take(1, start));
    BOOST_TEST(!bucket.try_take(1, start + 10s));
    BOOST_TEST(take_all(bucket, start + 10'500ms) == 5u);
}

BOOST_AUTO_TEST_CASE(wait_is_rounded_up_to_seconds) {
    token_bucket bucket(10, 10);
    BOOST_TEST(bucket.wait_for(1).count() == 1);
    take_all(bucket, start);
    BOOST_TEST(bucket.wait_for(1).count() == 1);
    BOOST_TEST(bucket.wait_for(9).count() == 1);
    BOOST_TEST(bucket.wait_for(11).count() == 2);
    BOOST_TEST(bucket.wait_for(10).count() == 1, "exactly one second away");
    BOOST_TEST(bucket.wait_for(20).count() == 2, "exactly two seconds away");
    BOOST_TEST(token_bucket(0, 0).wait_for(5).count() == 1);
}

BOOST_AUTO_TEST_CASE(after_the_wait_it_is_there) {
    auto random = test::random_for("token_buckets/after_the_wait");
    for (int round = 0; round < 500; ++round) {
        const double rate = static_cast<double>(test::draw(random, 1, 100));
        token_bucket bucket(rate, 200);
        bucket.charge(static_cast<double>(test::draw(random, 0, 1'000)), start);
        const double amount = static_cast<double>(test::draw(random, 1, 200));
        const auto wait = bucket.wait_for(amount);
        BOOST_TEST(bucket.try_take(amount, start + wait + 1us));
    }
}

BOOST_AUTO_TEST_CASE(a_new_rate_gives_no_fresh_burst) {
    token_bucket bucket(10, 10);
    take_all(bucket, start);
    bucket.set_rate(1'000, 1'000, start);
    BOOST_TEST(take_all(bucket, start) == 0u);
    BOOST_TEST(take_all(bucket, start + 100ms) == 100u);
    // What was due at the old rate is counted at the old rate.
    bucket.set_rate(10, 10, start + 101ms);
    BOOST_TEST(take_all(bucket, start + 101ms) == 1u);
    BOOST_TEST(take_all(bucket, start + 1'101ms) == 10u);
}

BOOST_AUTO_TEST_CASE(a_smaller_burst_cuts_what_was_saved) {
    token_bucket bucket(10, 100);
    bucket.set_rate(10, 5, start);
    BOOST_TEST(take_all(bucket, start) == 5u);
    bucket.set_rate(10, 5, start);
    BOOST_TEST(take_all(bucket, start) == 0u);
}

BOOST_AUTO_TEST_CASE(limits_can_be_lifted_and_set_again) {
    token_bucket bucket(10, 10);
    take_all(bucket, start);
    bucket.set_rate(0, 0, start);
    BOOST_TEST(bucket.try_take(1e6, start));
    bucket.set_rate(10, 10, start + 1s);
    BOOST_TEST(take_all(bucket, start + 1s) == 10u);
    BOOST_TEST(take_all(bucket, start + 2s) == 10u);
}

BOOST_AUTO_TEST_SUITE_END()
