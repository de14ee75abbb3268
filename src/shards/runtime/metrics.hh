// Metrics: labelled counters that appear when they first count, latency histograms, and the
// Prometheus text.
#pragma once

#include "shards/base/ss.hh"

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <seastar/core/future.hh>
#include <seastar/core/metrics.hh>
#include <seastar/core/metrics_registration.hh>
#include <string>
#include <string_view>

namespace tidepool {

// A family of counters with one label, e.g. io_timeouts_total{op}. One per core. Label values come
// from our code, never from clients; past 64 they count as "other", so a mistake cannot grow the
// registry.
class counter_family {
    static constexpr size_t values_max = 64;
    std::string _group;
    std::string _name;
    std::string _label;
    std::string _description;
    std::map<std::string, uint64_t, std::less<>>
        _counts; // nodes are stable: the metrics point into them
    ss::metrics::metric_groups _metrics;

public:
    // Full name: group_name. `known` are there from the start, at zero.
    counter_family(std::string group, std::string name, std::string label, std::string description,
        std::initializer_list<std::string_view> known = {});

    uint64_t& at(std::string_view value);
    void add(std::string_view value, uint64_t n = 1) { at(value) += n; }
    uint64_t total() const noexcept;
};

// Fixed buckets of 5, 10, 20, 50, 100, 200, 500 ms, 1, 2, 5 s, and two below for a node that
// answers faster.
class latency_histogram {
public:
    static constexpr std::array<double, 12> bounds_s{
        0.0005, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5};

    void record(std::chrono::steady_clock::duration) noexcept;
    ss::metrics::histogram value() const;
    uint64_t count() const noexcept { return _count; }

private:
    std::array<uint64_t, bounds_s.size()> _buckets{};
    uint64_t _count = 0;
    double _sum_s = 0;
};

// What the runtime counts on each core, by the names that dashboards know.
struct runtime_metrics {
    counter_family busy_rejections{"busy", "rejections_total", "endpoint",
        "Requests refused because of load", {"http", "ops"}};
    counter_family tasks_spawned{
        "tasks", "spawned_total", "kind", "Background fibers started", {"janitor"}};
    counter_family tasks_aborted{"tasks", "aborted_total", "kind",
        "Fibers and calls cut off at the drain deadline", {"janitor"}};
    counter_family tasks_canceled{
        "tasks", "canceled_total", "kind", "Fibers that ended because the node stops", {"janitor"}};
    counter_family io_timeouts{"io", "timeouts_total", "op",
        "Reads, writes and waits that took too long", {"read", "write", "idle"}};
    counter_family backoff_retries{
        "backoff", "retries_total", "op", "Retries after a failure", {"fiber"}};
    counter_family quota_reject{"quota", "reject_total", "kind",
        "Refusals by the quota that was exhausted",
        {"connections", "connections_per_ip", "inflight", "requests", "requests_per_ip", "bytes",
            "bytes_per_ip", "memory", "capability_rate"}};
    counter_family not_ready{"not", "ready_total", "phase",
        "Requests refused because the node is not ready", {"starting", "draining"}};
    counter_family service_restarts{
        "service", "restarts_total", "fiber", "Supervised fibers started again"};
};

// Prometheus text of all cores: our names as they are, Seastar's own behind "seastar_".
ss::future<std::string> metrics_text();

} // namespace tidepool
