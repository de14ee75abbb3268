#include "shards/base/breaker.hh"

#include "../seed.hh"

#include <boost/test/unit_test.hpp>
#include <set>
#include <vector>

using namespace tidepool;
using namespace std::chrono_literals;

namespace {

using state = breaker::state;
using time_point = breaker::time_point;

const time_point start{1'000s};

void call(breaker& b, bool success, time_point now) {
    const auto ticket = b.allow(now);
    BOOST_TEST_REQUIRE(ticket.allowed);
    b.report(ticket, success, now);
}

breaker opened_at(time_point now, breaker_policy policy = {}) {
    breaker b(policy);
    for (unsigned i = 0; i < policy.min_calls; ++i) {
        call(b, false, now);
    }
    BOOST_TEST_REQUIRE((b.current(now) == state::open));
    return b;
}

// The same rules, written down the long way: every outcome and every probe is kept.
class model {
    struct outcome {
        int64_t step;
        bool success;
    };
    breaker_policy _policy;
    std::vector<outcome> _outcomes;
    std::set<int> _probes_out; // ids of calls
    unsigned _probes_good = 0;
    bool _closed = true;
    time_point _opened{};
    int _life = 0; // grows with every change of state

    int64_t step_of(time_point now) const {
        return std::chrono::floor<std::chrono::milliseconds>(now.time_since_epoch())
               / (_policy.window_ms / 10);
    }

public:
    explicit model(breaker_policy policy) : _policy(policy) {}

    state current(time_point now) const {
        return _closed                               ? state::closed
               : now < _opened + _policy.cooldown_ms ? state::open
                                                     : state::half_open;
    }
    int life() const { return _life; }
    unsigned count(time_point now, bool only_failures) const {
        unsigned sum = 0;
        for (const auto& o : _outcomes) {
            sum += step_of(now) - o.step < 10 && !(only_failures && o.success) ? 1 : 0;
        }
        return sum;
    }
    bool allow(int id, time_point now) {
        switch (current(now)) {
        case state::closed:
            return true;
        case state::open:
            return false;
        case state::half_open:
            if (_probes_out.size() + _probes_good == _policy.probes) {
                return false;
            }
            _probes_out.insert(id);
            return true;
        }
        return false;
    }
    void report(int id, int life, bool success, time_point now) {
        if (life != _life) {
            return;
        }
        if (_closed) {
            _outcomes.push_back({step_of(now), success});
            const unsigned all = count(now, false);
            if (!success && all >= _policy.min_calls
                && count(now, true) >= _policy.trip_ratio * all) {
                change(false, now);
            }
            return;
        }
        _probes_out.erase(id);
        if (!success) {
            change(false, now);
        } else if (++_probes_good == _policy.probes) {
            change(true, now);
        }
    }
    void forget(int id, int life) {
        if (life == _life) {
            _probes_out.erase(id);
        }
    }

private:
    void change(bool closed, time_point now) {
        _closed = closed;
        _opened = now;
        _probes_out.clear();
        _probes_good = 0;
        ++_life;
        if (closed) {
            _outcomes.clear();
        }
    }
};

struct pending_call {
    int id;
    int life;
    breaker::ticket ticket;
};

// Random calls, answers and pauses on both; they must agree after every one.
class side_by_side {
    test::random_engine& _random;
    breaker_policy _policy;
    breaker _real{_policy};
    model _model{_policy};
    std::vector<pending_call> _pending;
    time_point _now = start;
    int _next_id = 0;

public:
    std::set<state> seen;

    side_by_side(test::random_engine& random, breaker_policy policy)
        : _random(random), _policy(policy) {}

    void step(unsigned failure_percent) {
        const auto dice = test::draw(_random, 0, 99);
        if (dice < 45) {
            ask();
        } else if (dice < 85 && !_pending.empty()) {
            answer(failure_percent);
        } else {
            const auto pause = dice < 97 ? _policy.window_ms / 20 : 2 * _policy.cooldown_ms;
            _now += std::chrono::milliseconds(
                test::draw(_random, 0, static_cast<uint64_t>(pause.count())));
        }
        compare();
    }

private:
    void ask() {
        const int id = _next_id++;
        const int life = _model.life();
        const bool expected = _model.allow(id, _now);
        const auto ticket = _real.allow(_now);
        BOOST_TEST_REQUIRE(ticket.allowed == expected);
        if (expected) {
            _pending.push_back({id, life, ticket});
        } else {
            // A refused ticket may be reported by mistake: it changes nothing.
            _real.report(ticket, false, _now);
        }
    }
    void answer(unsigned failure_percent) {
        const auto which = test::draw(_random, 0, _pending.size() - 1);
        const auto call = _pending[which];
        _pending.erase(_pending.begin() + static_cast<long>(which));
        if (test::draw(_random, 0, 19) == 0) {
            _model.forget(call.id, call.life);
            _real.forget(call.ticket);
            return;
        }
        const bool success = test::draw(_random, 0, 99) >= failure_percent;
        _model.report(call.id, call.life, success, _now);
        _real.report(call.ticket, success, _now);
    }
    void compare() {
        seen.insert(_real.current(_now));
        BOOST_TEST_REQUIRE(name(_real.current(_now)) == name(_model.current(_now)));
        if (_real.current(_now) == state::closed) {
            BOOST_TEST_REQUIRE(_real.calls(_now) == _model.count(_now, false));
            BOOST_TEST_REQUIRE(_real.failures(_now) == _model.count(_now, true));
        }
    }
};

} // namespace

BOOST_AUTO_TEST_SUITE(breakers)

BOOST_AUTO_TEST_CASE(too_few_calls_say_nothing) {
    breaker b({});
    for (int i = 0; i < 9; ++i) {
        call(b, false, start);
    }
    BOOST_TEST((b.current(start) == state::closed));
    BOOST_TEST(b.calls(start) == 9u);
    BOOST_TEST(b.failures(start) == 9u);
    call(b, false, start);
    BOOST_TEST((b.current(start) == state::open));
    BOOST_TEST(!b.allow(start).allowed);
}

BOOST_AUTO_TEST_CASE(opens_at_the_ratio_and_not_below) {
    breaker below({});
    for (int i = 0; i < 100; ++i) {
        call(below, i % 5 < 3, start); // 40 % fail
    }
    BOOST_TEST((below.current(start) == state::closed));
    breaker at({});
    for (int i = 0; i < 6; ++i) {
        call(at, true, start);
    }
    for (int i = 0; i < 5; ++i) {
        call(at, false, start);
    }
    BOOST_TEST((at.current(start) == state::closed));
    call(at, false, start);
    BOOST_TEST((at.current(start) == state::open));
}

BOOST_AUTO_TEST_CASE(old_outcomes_are_forgotten) {
    breaker b({});
    for (int i = 0; i < 9; ++i) {
        call(b, false, start);
    }
    BOOST_TEST(b.failures(start + 26s) == 9u);
    BOOST_TEST(b.failures(start + 30s) == 0u);
    call(b, false, start + 30s);
    BOOST_TEST((b.current(start + 30s) == state::closed));
    BOOST_TEST(b.calls(start + 30s) == 1u);
}

BOOST_AUTO_TEST_CASE(half_open_after_the_cooldown) {
    auto b = opened_at(start);
    BOOST_TEST((b.current(start + 9'999ms) == state::open));
    BOOST_TEST(!b.allow(start + 9'999ms).allowed);
    BOOST_TEST((b.current(start + 10s) == state::half_open));
}

BOOST_AUTO_TEST_CASE(half_open_admits_exactly_the_probes) {
    for (const unsigned probes : {1U, 3U, 7U}) {
        auto b = opened_at(start, {.probes = probes});
        const auto later = start + 10s;
        std::vector<breaker::ticket> tickets;
        for (unsigned i = 0; i < probes + 5; ++i) {
            const auto ticket = b.allow(later);
            BOOST_TEST(ticket.allowed == (i < probes));
            if (ticket.allowed) {
                tickets.push_back(ticket);
            }
        }
        for (const auto ticket : tickets) {
            BOOST_TEST((b.current(later) == state::half_open));
            b.report(ticket, true, later);
            // A success makes no room for another probe.
            BOOST_TEST((b.current(later) == state::closed || !b.allow(later).allowed));
        }
        BOOST_TEST((b.current(later) == state::closed));
        BOOST_TEST(b.calls(later) == 0u);
    }
}

BOOST_AUTO_TEST_CASE(a_failed_probe_opens_it_again) {
    auto b = opened_at(start);
    const auto later = start + 10s;
    const auto first = b.allow(later), second = b.allow(later);
    b.report(first, true, later);
    b.report(second, false, later);
    BOOST_TEST((b.current(later) == state::open));
    BOOST_TEST((b.current(later + 9'999ms) == state::open));
    BOOST_TEST((b.current(later + 10s) == state::half_open));
    // The success before counts no more: all three probes are needed again.
    for (int i = 0; i < 3; ++i) {
        BOOST_TEST((b.current(later + 10s) == state::half_open));
        call(b, true, later + 10s);
    }
    BOOST_TEST((b.current(later + 10s) == state::closed));
}

BOOST_AUTO_TEST_CASE(a_probe_never_sent_gives_its_place_back) {
    auto b = opened_at(start, {.probes = 1});
    const auto later = start + 10s;
    const auto ticket = b.allow(later);
    BOOST_TEST(!b.allow(later).allowed);
    b.forget(ticket);
    BOOST_TEST(b.allow(later).allowed);
    BOOST_TEST(!b.allow(later).allowed);
}

BOOST_AUTO_TEST_CASE(late_tickets_are_ignored) {
    breaker b({});
    std::vector<breaker::ticket> from_before;
    for (int i = 0; i < 20; ++i) {
        from_before.push_back(b.allow(start));
    }
    for (int i = 0; i < 10; ++i) {
        call(b, false, start);
    }
    const auto later = start + 10s;
    for (const auto ticket : from_before) {
        b.report(ticket, true, later);
        b.forget(ticket);
    }
    BOOST_TEST((b.current(later) == state::half_open));
    const auto probe = b.allow(later), slow_probe = b.allow(later);
    b.report(probe, false, later);
    b.report(slow_probe, true, later + 10s);
    BOOST_TEST((b.current(later + 10s) == state::half_open));
    b.report(from_before[0], false, later + 10s);
    BOOST_TEST((b.current(later + 10s) == state::half_open));
    for (int i = 0; i < 3; ++i) {
        call(b, true, later + 10s);
    }
    for (const auto ticket : from_before) {
        b.report(ticket, false, later + 10s);
    }
    BOOST_TEST((b.current(later + 10s) == state::closed));
    BOOST_TEST(b.failures(later + 10s) == 0u);
}

BOOST_AUTO_TEST_CASE(states_have_names) {
    BOOST_TEST(name(state::closed) == "closed");
    BOOST_TEST(name(state::open) == "open");
    BOOST_TEST(name(state::half_open) == "half_open");
}

BOOST_AUTO_TEST_CASE(agrees_with_the_model) {
    auto random = test::random_for("breakers/agrees_with_the_model");
    std::set<state> seen;
    for (int round = 0; round < 150; ++round) {
        const breaker_policy policy{
            .window_ms = std::chrono::milliseconds(10 * test::draw(random, 1, 500)),
            .trip_ratio = static_cast<double>(test::draw(random, 1, 10)) / 10,
            .min_calls = static_cast<unsigned>(test::draw(random, 1, 12)),
            .cooldown_ms = std::chrono::milliseconds(test::draw(random, 1, 2'000)),
            .probes = static_cast<unsigned>(test::draw(random, 1, 5)),
        };
        side_by_side both(random, policy);
        const auto failure_percent = static_cast<unsigned>(test::draw(random, 5, 95));
        for (int i = 0; i < 600; ++i) {
            both.step(failure_percent);
        }
        seen.merge(both.seen);
    }
    BOOST_TEST(seen.size() == 3u);
}

BOOST_AUTO_TEST_SUITE_END()
