// A call through a mailbox against the bare smp::submit_to it stands on: time per call from core 0
// to core 1, one at a time and with 64 in flight. The bare one has no bound, no deadline, no
// counters and no way to close.
#include "shards/runtime/mailbox.hh"
#include "side_by_side.hh"

#include <seastar/core/app-template.hh>
#include <seastar/core/thread.hh>
#include <seastar/core/when_all.hh>

namespace {

using namespace tidepool;

constexpr int rounds = 9;
constexpr unsigned calls_a_round = 200'000;

struct target {
    uint64_t calls = 0;
    ss::future<> stop() { return ss::make_ready_future<>(); }
};

constexpr queue_spec spec{.name = "bench.calls",
    .kind = queue_kind::mailbox,
    .capacity = "512",
    .producer = "core 0",
    .consumer = "core 1",
    .policy = overflow::reject_new,
    .counted = "-"};

using call = std::function<ss::future<>()>;

// One of the fibers that together keep `in_flight` calls going.
ss::future<> caller(const call& one, unsigned calls) {
    for (unsigned i = 0; i < calls; ++i) {
        co_await one();
    }
}

double ns_a_call(const call& one, unsigned in_flight) {
    const auto began = std::chrono::steady_clock::now();
    std::vector<ss::future<>> callers;
    for (unsigned i = 0; i < in_flight; ++i) {
        callers.push_back(caller(one, calls_a_round / in_flight));
    }
    ss::when_all_succeed(callers.begin(), callers.end()).get();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - began;
    return took.count() / calls_a_round;
}

void compare(const call& ours, const call& bare, unsigned in_flight, std::string_view name) {
    std::vector<double> our_times;
    std::vector<double> bare_times;
    for (int i = 0; i < rounds; ++i) {
        our_times.push_back(ns_a_call(ours, in_flight));
        bare_times.push_back(ns_a_call(bare, in_flight));
    }
    perf::print_ratio(
        name, "mailbox", perf::median(our_times), "submit_to", perf::median(bare_times), "ns/call");
}

void run() {
    ss::sharded<target> targets;
    targets.start().get();
    auto groups = hop_groups::create().get();
    queue_registry registry;
    {
        mailbox<target> box(spec, 512, registry,
            {groups.at(hop_level::request), groups.at(hop_level::reply)}, targets);
        const call ours = [&box] {
            return box
                .try_call(1, deadline(), [](target& t) -> result<uint64_t> { return ++t.calls; })
                .then([](const result<uint64_t>& r) {
                    if (!r) {
                        throw std::runtime_error("refused");
                    }
                });
        };
        const call bare = [&targets] {
            return ss::smp::submit_to(1, [&targets] {
                return ++targets.local().calls;
            }).discard_result();
        };
        ns_a_call(ours, 64); // warm
        ns_a_call(bare, 64);
        compare(ours, bare, 1, "mailbox_vs_raw_submit_single");
        compare(ours, bare, 64, "mailbox_vs_raw_submit_64");
        box.close(deadline()).get();
        box.stop(deadline()).get();
    }
    targets.stop().get();
}

} // namespace

int main(int argc, char** argv) {
    seastar::app_template app;
    return app.run(argc, argv, [] { return seastar::async(run); });
}
