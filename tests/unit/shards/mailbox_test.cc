// The mailbox under every way a call can end. Each test runs on one core and on two.
#include "cores.hh"

#include <seastar/core/memory.hh>
#include <seastar/core/sleep.hh>
#include <seastar/testing/thread_test_case.hh>

using namespace tidepool;
using namespace tidepool::test;
using std::chrono::milliseconds;

namespace {

constexpr queue_spec spec{.name = "test.calls",
    .kind = queue_kind::mailbox,
    .capacity = "-",
    .producer = "test",
    .consumer = "test",
    .policy = overflow::reject_new,
    .counted = "-"};

// A service whose answers come when the test says so.
class worker {
public:
    std::vector<int> order;
    ss::condition_variable released;
    bool open = false;

    ss::future<result<int>> hold(int n) {
        order.push_back(n);
        co_await released.wait([this] { return open; });
        co_return n;
    }
    result<int> at_once(int n) {
        order.push_back(n);
        return n;
    }
    void release() {
        open = true;
        released.broadcast();
    }
    ss::future<> stop() { return ss::make_ready_future<>(); }
};

// A mailbox on this core towards workers on every core.
struct bench {
    cores runtimes;
    ss::sharded<worker> workers;
    std::optional<mailbox<worker>> box;

    explicit bench(unsigned capacity) {
        workers.start().get();
        auto& r = runtimes.here();
        box.emplace(spec, capacity, r.queues, r.hops(hop_level::request, capacity), workers);
    }
    ~bench() {
        release();
        if (!closed) {
            box->close(deadline::in(milliseconds(5'000))).get();
        }
        BOOST_CHECK(box->stop(deadline::in(milliseconds(5'000))).get());
        BOOST_CHECK_EQUAL(box->counts().depth, 0U);
        box.reset();
        workers.stop().get();
    }
    bool closed = false;
    void close(milliseconds within) {
        closed = true;
        box->close(deadline::in(within)).get();
    }
    void release() {
        workers.invoke_on_all([](worker& w) { w.release(); }).get();
    }
    ss::future<result<int>> hold(ss::shard_id to, int n, deadline dl = {}) {
        return box->try_call(to, dl, [n](worker& w) { return w.hold(n); });
    }
};

std::vector<ss::shard_id> targets() {
    return ss::smp::count > 1 ? std::vector<ss::shard_id>{0, last_core()}
                              : std::vector<ss::shard_id>{0};
}

uint64_t ended(const queue_counts& c) {
    return c.done + c.refused + c.timed_out + c.canceled + c.aborted;
}

} // namespace

SEASTAR_THREAD_TEST_CASE(mailbox_refuses_exactly_at_capacity) {
    for (const auto to : targets()) {
        bench b(7);
        std::vector<ss::future<result<int>>> calls;
        for (int i = 0; i < 7; ++i) {
            calls.push_back(b.hold(to, i));
            BOOST_CHECK_EQUAL(b.box->counts().depth, uint64_t(i + 1));
        }
        for (int i = 0; i < 3; ++i) {
            auto refused = b.hold(to, 100);
            BOOST_REQUIRE(refused.available()); // at once, on this core
            auto answer = refused.get();
            BOOST_REQUIRE(!answer);
            BOOST_CHECK(answer.error().code == errc::busy);
        }
        b.release();
        for (int i = 0; i < 7; ++i) {
            BOOST_CHECK_EQUAL(calls[i].get().value(), i);
        }
        BOOST_CHECK_EQUAL(b.box->counts().depth, 0U);
        BOOST_CHECK_EQUAL(b.box->counts().done, 7U);
        BOOST_CHECK_EQUAL(b.box->counts().refused, 3U);
    }
}

SEASTAR_THREAD_TEST_CASE(mailbox_keeps_the_order_of_calls_to_one_core) {
    bench b(512);
    std::vector<ss::future<result<int>>> calls;
    std::vector<int> sent;
    for (int i = 0; i < 500; ++i) {
        sent.push_back(i);
        calls.push_back(
            b.box->try_call(last_core(), deadline(), [i](worker& w) { return w.at_once(i); }));
    }
    for (auto& call : calls) {
        BOOST_REQUIRE(call.get());
    }
    const auto order = b.workers.invoke_on(last_core(), [](worker& w) { return w.order; }).get();
    BOOST_CHECK(order == sent);
}

SEASTAR_THREAD_TEST_CASE(mailbox_slow_call_does_not_delay_its_neighbours) {
    bench b(8);
    auto slow = b.hold(last_core(), 1);
    auto quick = b.box->try_call(last_core(), deadline(), [](worker& w) { return w.at_once(2); });
    BOOST_CHECK_EQUAL(
        quick.get().value(), 2); // both left in one hop; only the slow one is still out
    BOOST_CHECK(!slow.available());
    b.release();
    BOOST_CHECK_EQUAL(slow.get().value(), 1);
}

SEASTAR_THREAD_TEST_CASE(mailbox_wait_ends_with_the_deadline) {
    bench b(1);
    auto held = b.hold(0, 1);
    for (const auto wait : {milliseconds(400), milliseconds(1'000)}) {
        const auto began = std::chrono::steady_clock::now();
        auto answer =
            b.box->call_within(0, wait, deadline(), [](worker& w) { return w.at_once(2); }).get();
        const auto took = std::chrono::steady_clock::now() - began;
        BOOST_REQUIRE(!answer);
        BOOST_CHECK(answer.error().code == errc::timeout);
        BOOST_CHECK_GE(took / milliseconds(1), wait.count() - 11); // the clock ticks every 10 ms
        // The promise is +5 %; a loaded machine may add what it likes, so this only catches a wrong
        // clock.
        BOOST_CHECK_LE(took / milliseconds(1), wait.count() * 2);
    }
    BOOST_CHECK_EQUAL(b.box->counts().timed_out, 2U);
    b.release();
    held.get().value();
}

SEASTAR_THREAD_TEST_CASE(mailbox_waiters_are_bounded_and_served_in_order) {
    bench b(3);
    std::vector<ss::future<result<int>>> held;
    std::vector<ss::future<result<int>>> waiting;
    for (int i = 0; i < 3; ++i) {
        held.push_back(b.hold(last_core(), i));
    }
    for (int i = 10; i < 13; ++i) {
        waiting.push_back(b.box->call_within(last_core(), milliseconds(60'000), deadline(),
            [i](worker& w) { return w.at_once(i); }));
    }
    auto one_too_many = b.box->call_within(
        last_core(), milliseconds(60'000), deadline(), [](worker& w) { return w.at_once(99); });
    BOOST_CHECK(one_too_many.get().error().code == errc::busy);
    // Nobody overtakes those who wait.
    BOOST_CHECK(b.hold(last_core(), 98).get().error().code == errc::busy);
    b.release();
    for (int i = 0; i < 3; ++i) {
        BOOST_CHECK_EQUAL(waiting[i].get().value(), 10 + i);
        BOOST_CHECK_EQUAL(held[i].get().value(), i);
    }
    auto order = b.workers.invoke_on(last_core(), [](worker& w) { return w.order; }).get();
#ifdef SEASTAR_SHUFFLE_TASK_QUEUE
    std::ranges::sort(order); // this build of Seastar runs ready tasks in random order
#endif
    BOOST_CHECK((order == std::vector<int>{0, 1, 2, 10, 11, 12}));
}

SEASTAR_THREAD_TEST_CASE(mailbox_expired_call_never_reaches_the_service) {
    bench b(4);
    auto answer = b.box
                      ->try_call(last_core(), deadline::in(milliseconds(-20)),
                          [](worker& w) { return w.at_once(1); })
                      .get();
    BOOST_REQUIRE(!answer);
    BOOST_CHECK(answer.error().code == errc::timeout);
    BOOST_CHECK(b.workers.invoke_on(last_core(), [](worker& w) { return w.order.empty(); }).get());
}

SEASTAR_THREAD_TEST_CASE(mailbox_fault_of_the_service_is_an_answer) {
    bench b(4);
    auto answer =
        b.box
            ->try_call(last_core(), deadline(),
                [](worker&) -> ss::future<result<int>> {
                    return ss::make_exception_future<result<int>>(std::runtime_error("broken"));
                })
            .get();
    BOOST_REQUIRE(!answer);
    BOOST_CHECK(answer.error().code == errc::internal);
    BOOST_CHECK_EQUAL(b.box->counts().depth, 0U);
}

SEASTAR_THREAD_TEST_CASE(mailbox_loan_keeps_its_credit) {
    bench b(1);
    {
        auto answer =
            b.box
                ->try_call(last_core(), deadline(),
                    [](worker&) -> result<loan<std::string>> {
                        return loan(std::make_unique<std::string>("the receiver's memory"));
                    })
                .get();
        BOOST_CHECK_EQUAL(**answer, "the receiver's memory");
        BOOST_CHECK_EQUAL(b.box->counts().depth, 1U);
        BOOST_CHECK(b.hold(last_core(), 1).get().error().code == errc::busy);
    }
    BOOST_CHECK_EQUAL(b.box->counts().depth, 0U);
}

SEASTAR_THREAD_TEST_CASE(mailbox_close_refuses_aborts_and_counts) {
    bench b(8);
    std::vector<ss::future<result<int>>> calls;
    for (const auto to : targets()) {
        calls.push_back(b.hold(to, 1));
    }
    auto waiter = b.box->call_within(
        0, milliseconds(60'000), deadline(), [](worker& w) { return w.hold(2); });
    b.close(milliseconds(50));
    BOOST_CHECK(b.hold(0, 3).get().error().code == errc::canceled);
    for (auto& call : calls) {
        BOOST_CHECK(call.get().error().code == errc::canceled);
    }
    BOOST_CHECK(waiter.get().error().code == errc::canceled);
    // The waiter got its credit at once, but the node may have closed before it could use it.
    const auto& counts = b.box->counts();
    BOOST_CHECK_GE(counts.aborted, calls.size());
    BOOST_CHECK_EQUAL(counts.aborted + counts.canceled, calls.size() + 2);
    // The receivers still hold the calls: stop() says so, and succeeds once they let go.
    BOOST_CHECK(!b.box->stop(deadline::in(milliseconds(30))).get());
}

// Any schedule of calls, answers and closing: nothing is lost, nothing is counted twice.
SEASTAR_THREAD_TEST_CASE(mailbox_every_call_ends_once_in_any_schedule) {
    auto random = random_for("mailbox_schedules");
    std::printf("TIDEPOOL_TEST_SEED=%ju\n", uintmax_t(run_seed()));
    for (int round = 0; round < 40; ++round) {
        bench b(static_cast<unsigned>(draw(random, 1, 6)));
        std::vector<ss::future<result<int>>> calls;
        const auto steps = draw(random, 5, 60);
        const auto release_at = draw(random, 0, 80);
        for (uint64_t step = 0; step < steps; ++step) {
            const auto to = static_cast<ss::shard_id>(draw(random, 0, ss::smp::count - 1));
            const int n = static_cast<int>(step);
            switch (draw(random, 0, 4)) {
            case 0:
                calls.push_back(b.hold(to, n));
                break;
            case 1:
                calls.push_back(
                    b.box->try_call(to, deadline(), [n](worker& w) { return w.at_once(n); }));
                break;
            case 2:
                calls.push_back(b.box->call_within(to, milliseconds(draw(random, 1, 30)),
                    deadline(), [n](worker& w) { return w.hold(n); }));
                break;
            case 3:
                ss::thread::yield();
                break;
            default:
                if (step >= release_at) {
                    b.release();
                }
            }
        }
        b.close(milliseconds(draw(random, 0, 20)));
        uint64_t answers = 0;
        for (auto& call : calls) {
            answers += call.get() ? 1 : 0;
        }
        BOOST_CHECK_EQUAL(b.box->counts().done, answers);
        BOOST_CHECK_EQUAL(ended(b.box->counts()), calls.size());
    }
}

// Ten times as many calls as there are credits, for as long as asked: refusals, not memory.
SEASTAR_THREAD_TEST_CASE(mailbox_memory_is_flat_under_overload) {
    const char* asked = std::getenv("TIDEPOOL_OVERLOAD_SECONDS");
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::seconds(asked ? std::atoi(asked) : 2);
    bench b(64);
    size_t settled = 0;
    uint64_t rounds = 0;
    uint64_t answers = 0;
    while (std::chrono::steady_clock::now() < until) {
        std::vector<ss::future<result<int>>> calls;
        for (int i = 0; i < 640; ++i) {
            calls.push_back(
                b.box->try_call(last_core(), deadline(), [](worker&) -> ss::future<result<int>> {
                    return ss::sleep(std::chrono::microseconds(200)).then([] {
                        return result<int>(1);
                    });
                }));
        }
        for (auto& call : calls) {
            answers += call.get() ? 1 : 0;
        }
        // The first rounds fill the allocator's pools.
        if (++rounds == 50) {
            settled = ss::memory::stats().allocated_memory();
        }
    }
    const auto& counts = b.box->counts();
    BOOST_TEST_MESSAGE("accepted " << counts.done << ", refused " << counts.refused << " in "
                                   << rounds << " rounds");
    BOOST_CHECK_GT(rounds, 50U);
    BOOST_CHECK_EQUAL(counts.done, answers);
    BOOST_CHECK_EQUAL(counts.refused, 9 * counts.done);
    const auto now = ss::memory::stats().allocated_memory();
    BOOST_CHECK_LT(now, settled + 1024 * 1024);
}
