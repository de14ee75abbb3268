// Queues inside a core, configuration swap, admission, fibers, retries, metrics, the example
// service.
#include "cores.hh"
#include "node/node.hh"
#include "shards/runtime/bounded_queue.hh"
#include "shards/runtime/event_bus.hh"
#include "shards/runtime/latest_cell.hh"
#include "shards/runtime/retry.hh"

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <seastar/core/on_internal_error.hh>
#include <seastar/core/sleep.hh>
#include <seastar/core/when_all.hh>
#include <seastar/testing/thread_test_case.hh>
#include <seastar/util/later.hh>

using namespace tidepool;
using namespace tidepool::test;
using std::chrono::milliseconds;

namespace {

// The test runner makes internal errors fatal; these tests want to see them.
struct internal_errors_throw {
    bool before = ss::set_abort_on_internal_error(false);
    ~internal_errors_throw() { ss::set_abort_on_internal_error(before); }
};

constexpr queue_spec make_spec(std::string_view name, queue_kind kind, overflow policy) {
    return {.name = name,
        .kind = kind,
        .capacity = "-",
        .producer = "test",
        .consumer = "test",
        .policy = policy,
        .counted = "-"};
}

constexpr auto rejecting =
    make_spec("test.rejecting", queue_kind::local_queue, overflow::reject_new);
constexpr auto dropping =
    make_spec("test.dropping", queue_kind::local_queue, overflow::drop_oldest);
constexpr auto bus_spec = make_spec("test.bus", queue_kind::bus, overflow::drop_oldest);
constexpr auto cell_spec = make_spec("test.cell", queue_kind::latest_cell, overflow::latest_wins);

} // namespace

SEASTAR_THREAD_TEST_CASE(owner_check_fires_on_another_core) {
    internal_errors_throw guard;
    owned here;
    here.assert_owner();
    if (ss::smp::count > 1) {
        auto touched = ss::smp::submit_to(1, [&here] { here.assert_owner(); });
        BOOST_CHECK_THROW(touched.get(), std::runtime_error);
    }
}

SEASTAR_THREAD_TEST_CASE(owner_of_spreads_keys_evenly_over_any_number_of_cores) {
    for (const unsigned count : {1U, 2U, 3U, 7U, 64U}) {
        std::vector<unsigned> hits(count);
        for (unsigned i = 0; i < 2'000 * count; ++i) {
            ++hits.at(owner_of(hash64(fmt::format("key-{}", i)), count));
        }
        BOOST_CHECK_GT(*std::ranges::min_element(hits), 1'700U);
        BOOST_CHECK_LT(*std::ranges::max_element(hits), 2'300U);
    }
}

SEASTAR_THREAD_TEST_CASE(bounded_queue_rejects_waits_and_drops) {
    cores c;
    bounded_queue<int> q(rejecting, 2, c.here().queues);
    BOOST_CHECK(q.push(1) && q.push(2));
    BOOST_CHECK(q.push(3).error().code == errc::busy);
    BOOST_CHECK(
        q.push_until(3, deadline::in(milliseconds(30))).get().error().code == errc::timeout);
    auto waiting = q.push_until(4, deadline::in(milliseconds(5'000)));
    BOOST_CHECK_EQUAL(*q.pop().get(), 1);
    BOOST_CHECK(waiting.get());
    q.close();
    BOOST_CHECK(q.push(5).error().code == errc::canceled);
    BOOST_CHECK_EQUAL(*q.pop().get(), 2);
    q.abort();
    BOOST_CHECK(!q.pop().get());
    BOOST_CHECK_EQUAL(q.counts().aborted, 1U);
    BOOST_CHECK_EQUAL(q.counts().depth, 0U);

    bounded_queue<int> newest(dropping, 2, c.here().queues);
    for (int i = 1; i <= 5; ++i) {
        BOOST_CHECK(newest.push(i));
    }
    BOOST_CHECK_EQUAL(*newest.pop().get(), 4);
    BOOST_CHECK_EQUAL(newest.counts().dropped, 3U);
}

SEASTAR_THREAD_TEST_CASE(event_bus_drops_the_oldest_for_the_slow_only) {
    cores c;
    event_bus<int> bus(bus_spec, c.here().queues, 4);
    event_bus<int>::subscription slow(bus);
    event_bus<int>::subscription quick(bus);
    for (int i = 0; i < 10; ++i) {
        bus.publish(i);
        BOOST_CHECK_EQUAL(*quick.next().get(), i);
    }
    BOOST_CHECK_EQUAL(slow.behind(), 10U);
    BOOST_CHECK_EQUAL(*slow.next().get(), 6); // 0..5 are gone
    BOOST_CHECK_EQUAL(slow.lagged(), 6U);
    BOOST_CHECK_EQUAL(quick.lagged(), 0U);
    BOOST_CHECK_EQUAL(bus.lagged(), 6U);
    BOOST_CHECK(!quick.next(deadline::in(milliseconds(20))).get());
    auto waiting = quick.next();
    bus.close();
    BOOST_CHECK(!waiting.get());
    BOOST_CHECK(quick.closed());
}

SEASTAR_THREAD_TEST_CASE(latest_cell_shows_only_the_last) {
    cores c;
    latest_cell<int> cell(cell_spec, c.here().queues, 0);
    auto first = cell.newer_than(0);
    cell.set(1);
    cell.set(2);
    cell.set(3);
    BOOST_CHECK_EQUAL(first.get(), 3U);
    BOOST_CHECK_EQUAL(cell.get(), 3);
    BOOST_CHECK_EQUAL(cell.counts().dropped, 2U);
    BOOST_CHECK_EQUAL(cell.counts().done, 1U);
}

SEASTAR_THREAD_TEST_CASE(queue_of_the_same_name_is_a_bug) {
    internal_errors_throw guard;
    cores c;
    bounded_queue<int> q(rejecting, 1, c.here().queues);
    BOOST_CHECK_THROW((bounded_queue<int>(rejecting, 1, c.here().queues)), std::runtime_error);
}

namespace {

// Reads two fields of one snapshot with a suspension between them; they are always written as a
// pair.
ss::future<uint64_t> read_until(runtime& r, const bool& stop) {
    uint64_t torn = 0;
    while (!stop) {
        const auto snapshot = r.conf.snapshot();
        const auto first = snapshot->http.read_timeout_ms;
        co_await ss::yield();
        torn += first != snapshot->http.write_timeout_ms ? 1 : 0;
    }
    co_return torn;
}

} // namespace

SEASTAR_THREAD_TEST_CASE(configuration_swap_is_never_torn) {
    cores c;
    bool stop = false;
    auto readers = c.all.map_reduce0(
        [&stop](runtime& r) {
            return ss::when_all_succeed(read_until(r, stop), read_until(r, stop))
                .then_unpack([](auto a, auto b) { return a + b; });
        },
        uint64_t(0), std::plus<>());
    for (uint64_t version = 1; version <= 200; ++version) {
        auto next = *c.here().conf;
        next.http.read_timeout_ms = next.http.write_timeout_ms = 1'000 + version;
        next.http.backlog = 77; // restart: reported, never in force
        const auto diff = reload(c.all, next).get();
        BOOST_CHECK_EQUAL(diff.live.size(), 2U);
        BOOST_CHECK_EQUAL(diff.needs_restart.size(), 1U);
        const auto seen = c.all.map([](runtime& r) { return r.conf->http.read_timeout_ms; }).get();
        BOOST_CHECK(std::ranges::all_of(seen, [&](uint64_t v) { return v == 1'000 + version; }));
        BOOST_CHECK_EQUAL(c.here().conf->http.backlog, config{}.http.backlog);
    }
    stop = true;
    BOOST_CHECK_EQUAL(readers.get(), 0U);
    BOOST_CHECK_EQUAL(c.here().conf.version(), 201U);
}

SEASTAR_THREAD_TEST_CASE(supervisor_restarts_then_fails_closed) {
    cores c;
    auto& fibers = c.here().fibers;
    std::string fatal;
    unsigned runs = 0;
    fibers.on_fatal([&](std::string why) { fatal = std::move(why); });
    const backoff_policy quick{milliseconds(1), milliseconds(4), 3};
    fibers.spawn("test", "failing", restart::on_failure, quick, [&](ss::abort_source&) {
        ++runs;
        return ss::make_exception_future<>(std::runtime_error("no luck"));
    });
    while (fatal.empty() || !fibers.alive().empty()) {
        ss::sleep(milliseconds(5)).get();
    }
    BOOST_CHECK_EQUAL(runs, 4U); // the first, and three tries more
    BOOST_CHECK_EQUAL(fatal, "failing: std::runtime_error (no luck)");
}

SEASTAR_THREAD_TEST_CASE(supervisor_stop_names_and_counts_what_is_left) {
    cores c;
    ss::promise<> never;
    {
        supervisor fibers(c.here().metrics, 1);
        fibers.spawn("test", "polite", restart::always, fiber_backoff, [](ss::abort_source& stop) {
            return ss::sleep_abortable(std::chrono::hours(1), stop);
        });
        fibers.spawn("test", "stubborn", restart::never, fiber_backoff,
            [&](ss::abort_source&) { return never.get_future(); });
        const auto left = fibers.stop(deadline::in(milliseconds(50))).get();
        BOOST_CHECK((left == std::vector<std::string>{"stubborn"}));
        BOOST_CHECK_EQUAL(c.here().metrics.tasks_aborted.at("test"), 1U);
        BOOST_CHECK_EQUAL(c.here().metrics.tasks_canceled.at("test"), 1U);
        never.set_value();
        BOOST_CHECK(fibers.stop(deadline::in(milliseconds(1'000))).get().empty());
    }
}

SEASTAR_THREAD_TEST_CASE(admission_quotas_are_exact_and_given_back) {
    config conf;
    const auto n = ss::smp::count;
    conf.admission.connections_max = 3 * n;
    conf.admission.connections_per_ip_max = 2 * n;
    conf.admission.inflight_max = 2 * n;
    conf.admission.memory_max_bytes = 1'000 * n;
    cores c(conf);
    auto& admit = c.here().admit;
    const ss::net::inet_address one("127.0.0.1");
    const ss::net::inet_address other("127.0.0.2");
    auto a = admit.admit_connection(one);
    auto b = admit.admit_connection(one);
    BOOST_REQUIRE(a && b);
    BOOST_CHECK(admit.admit_connection(one).error().code == errc::busy);
    auto d = admit.admit_connection(other);
    BOOST_REQUIRE(d);
    BOOST_CHECK(!admit.admit_connection(other)); // all places are taken
    BOOST_CHECK_EQUAL(c.here().metrics.quota_reject.at("connections_per_ip"), 1U);
    BOOST_CHECK_EQUAL(c.here().metrics.quota_reject.at("connections"), 1U);
    {
        auto r1 = admit.admit_request(*a, 10);
        auto r2 = admit.admit_request(*a, 10);
        BOOST_CHECK(r1 && r2 && !admit.admit_request(*b, 10));
        auto m1 = admit.admit_body(*a, 600);
        BOOST_CHECK(m1 && !admit.admit_body(*a, 401) && admit.admit_body(*a, 400));
    }
    BOOST_CHECK_EQUAL(admit.inflight(), 0U);
    BOOST_CHECK_EQUAL(admit.memory(), 0U);
    *a = {};
    BOOST_CHECK(admit.admit_connection(one));
}

SEASTAR_THREAD_TEST_CASE(admission_rate_refuses_with_a_time_to_come_back) {
    config conf;
    conf.admission.requests_per_s_per_ip = 5 * ss::smp::count;
    cores c(conf);
    auto connection = c.here().admit.admit_connection(ss::net::inet_address("127.0.0.1"));
    unsigned accepted = 0;
    for (int i = 0; i < 20; ++i) {
        accepted += c.here().admit.admit_request(*connection, 1) ? 1 : 0;
    }
    BOOST_CHECK_GE(accepted, 5U);
    BOOST_CHECK_LE(accepted, 7U); // a slow machine may earn a token or two meanwhile
    auto refused = c.here().admit.admit_request(*connection, 1);
    BOOST_REQUIRE(!refused);
    BOOST_CHECK_GE(retry_after(refused.error()).count(), 1);
}

namespace {

struct failing_call {
    errc code;
    unsigned calls = 0;
    ss::future<result<int>> operator()() {
        ++calls;
        return ss::make_ready_future<result<int>>(fail(code));
    }
};

} // namespace

SEASTAR_THREAD_TEST_CASE(retry_stops_at_three_and_never_passes_the_deadline) {
    cores c;
    ss::abort_source stop;
    const retry_context context{.op = "test",
        .retries = c.here().metrics.backoff_retries,
        .random = c.here().random,
        .stop = stop};
    failing_call busy{errc::busy};
    BOOST_CHECK(!retry(context, idempotent, deadline::in(milliseconds(60'000)), busy).get());
    BOOST_CHECK_EQUAL(busy.calls, 4U);
    BOOST_CHECK_EQUAL(c.here().metrics.backoff_retries.at("test"), 3U);

    failing_call hurried{errc::busy};
    BOOST_CHECK(!retry(context, idempotent, deadline::in(milliseconds(30)), hurried).get());
    BOOST_CHECK_EQUAL(hurried.calls, 1U); // the first pause is at least 50 ms

    failing_call hopeless{errc::bad_request};
    BOOST_CHECK(!retry(context, idempotent, deadline::in(milliseconds(60'000)), hopeless).get());
    BOOST_CHECK_EQUAL(hopeless.calls, 1U);
}

SEASTAR_THREAD_TEST_CASE(hop_budget_refuses_more_credits_than_the_group_has) {
    hop_budget budget;
    budget.reserve(hop_level::request, hop_groups::share);
    BOOST_CHECK_THROW(budget.reserve(hop_level::request, 1), std::runtime_error);
    budget.reserve(hop_level::derived, 1);
}

// The names that dashboards rely on. A name that disappears breaks them, so it must disappear from
// here as well.
SEASTAR_THREAD_TEST_CASE(metrics_have_the_promised_names) {
    cores c;
    bounded_queue<int> q(rejecting, 1, c.here().queues);
    event_bus<int> bus(bus_spec, c.here().queues, 4);
    c.here().breakers.add("somewhere", {});
    const auto text = metrics_text().get();
    for (const std::string name :
        {"queue_depth{queue=", "queue_dropped_total{queue=", "busy_rejections_total{endpoint=",
            "tasks_spawned_total{kind=", "tasks_aborted_total{kind=", "tasks_canceled_total{kind=",
            "io_timeouts_total{op=", "backoff_retries_total{op=", "bus_lagged_total{bus=",
            "quota_reject_total{kind=", "not_ready_total{phase=",
            "breaker_state{shard=\"0\",state=\"closed\",target=\"somewhere\"} 1",
            "breaker_state{shard=\"0\",state=\"open\",target=\"somewhere\"} 0",
            "seastar_reactor_"}) {
        BOOST_CHECK_MESSAGE(text.find("\n" + name) != text.npos, name << " is missing");
    }
}

SEASTAR_THREAD_TEST_CASE(echo_answers_from_the_owner_core) {
    cores c;
    ss::sharded<echo_service> echo;
    echo.start(std::ref(c.all), std::ref(echo)).get();
    std::optional<echo_service::event_subscription> events(std::in_place, echo.local().events());
    for (int i = 0; i < 50; ++i) {
        const auto key = fmt::format("key-{}", i);
        BOOST_CHECK_EQUAL(echo.local().put(key, "v" + key, deadline()).get().value(), 1U);
        auto found = echo.local().get(key, deadline()).get();
        BOOST_REQUIRE(found);
        BOOST_CHECK_EQUAL((*found)->core, owner_of(key));
        BOOST_CHECK_EQUAL((*found)->value.value, "v" + key);
        BOOST_CHECK_EQUAL(events->next().get()->key, key);
    }
    BOOST_CHECK(echo.local().get("absent", deadline()).get().error().code == errc::not_found);
    BOOST_CHECK(echo.local().erase("key-1", deadline()).get());
    BOOST_CHECK(!echo.local().get("key-1", deadline()).get());
    events.reset(); // a subscription must not outlive its bus
    echo.invoke_on_all([](echo_service& s) { return s.close(deadline::in(milliseconds(1'000))); })
        .get();
    BOOST_CHECK(echo.local().get("key-2", deadline()).get().error().code == errc::canceled);
    BOOST_CHECK(echo.local().drained(deadline::in(milliseconds(1'000))).get());
    echo.stop().get();
}

SEASTAR_THREAD_TEST_CASE(concurrency_document_is_printed_from_the_declarations) {
    std::ifstream file(TIDEPOOL_SOURCE_DIR "/docs/CONCURRENCY.md");
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    BOOST_CHECK_MESSAGE(
        text == node::concurrency_docs(), "docs/CONCURRENCY.md is old: run make docs");
}
