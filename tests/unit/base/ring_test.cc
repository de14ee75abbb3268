#include "shards/base/ring.hh"

#include "../seed.hh"

#include <boost/test/unit_test.hpp>
#include <deque>
#include <memory>

using namespace tidepool;

BOOST_AUTO_TEST_SUITE(rings)

BOOST_AUTO_TEST_CASE(first_in_first_out_around_the_end) {
    ring<int> r(3);
    BOOST_TEST(r.empty());
    BOOST_TEST(r.capacity() == 3u);
    for (int i = 0; i < 20; ++i) {
        r.push(2 * i);
        r.push(2 * i + 1);
        BOOST_TEST(r.front() == 2 * i);
        BOOST_TEST(r.pop() == 2 * i);
        BOOST_TEST(r.pop() == 2 * i + 1);
        BOOST_TEST(r.empty());
    }
}

BOOST_AUTO_TEST_CASE(full_is_full) {
    ring<int> r(1);
    r.push(7);
    BOOST_TEST(r.full());
    BOOST_TEST(r.size() == 1u);
    BOOST_TEST(r.pop() == 7);
    BOOST_TEST(!r.full());
}

BOOST_AUTO_TEST_CASE(values_that_only_move) {
    ring<std::unique_ptr<int>> r(2);
    r.push(std::make_unique<int>(1));
    r.push(std::make_unique<int>(2));
    *r.front() = 3;
    BOOST_TEST(*r.pop() == 3);
    BOOST_TEST(*r.pop() == 2);
}

BOOST_AUTO_TEST_CASE(a_popped_value_is_freed_at_once) {
    const auto shared = std::make_shared<int>(1);
    ring<std::shared_ptr<int>> r(4);
    r.push(shared);
    r.push(shared);
    BOOST_TEST(shared.use_count() == 3);
    r.pop();
    BOOST_TEST(shared.use_count() == 2);
    r.pop();
    BOOST_TEST(shared.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(behaves_like_a_bounded_deque) {
    auto random = test::random_for("rings/behaves_like_a_bounded_deque");
    for (int round = 0; round < 50; ++round) {
        const size_t capacity = test::draw(random, 1, 9);
        ring<uint64_t> r(capacity);
        std::deque<uint64_t> model;
        for (int i = 0; i < 400; ++i) {
            if (!r.full() && (r.empty() || test::draw(random, 0, 1))) {
                model.push_back(random());
                r.push(model.back());
            } else {
                BOOST_TEST_REQUIRE(r.front() == model.front());
                BOOST_TEST_REQUIRE(r.pop() == model.front());
                model.pop_front();
            }
            BOOST_TEST_REQUIRE(r.size() == model.size());
            BOOST_TEST_REQUIRE(r.full() == (model.size() == capacity));
            BOOST_TEST_REQUIRE(r.empty() == model.empty());
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
