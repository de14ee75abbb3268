// The node's /v1/status document as values. More fields than these are welcome; a missing one, or
// one of another type, is an error that names it.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace tidepool::ctl {

struct core_status {
    uint64_t core = 0;
    double busy = 0; // 0 to 1
    uint64_t connections = 0;
    uint64_t inflight = 0;
    uint64_t requests_total = 0;
    uint64_t memory_used_bytes = 0;
    uint64_t memory_total_bytes = 0;
};

// One queue on one core, or summed over all cores.
struct queue_status {
    std::string queue;
    std::string kind;
    uint64_t depth = 0;
    uint64_t capacity = 0;
    uint64_t done_total = 0;
    uint64_t refused_total = 0;
    uint64_t dropped_total = 0;
    uint64_t aborted_total = 0;
};

struct phase_status {
    std::string phase;
    double after_ms = 0;
};

struct fiber_status {
    std::string kind;
    std::string name;
    uint64_t core = 0;
    uint64_t restarts = 0;
};

struct status_report {
    std::string node;
    std::string version;
    std::string phase;
    std::vector<std::string> missing;
    double uptime_s = 0;
    uint64_t config_version = 0;
    std::vector<core_status> cores;
    std::vector<queue_status> queues; // summed over cores, by name
    std::vector<phase_status> phases;
    std::vector<fiber_status> fibers;
    std::string document; // as it came, on one line

    bool ready() const { return phase == "ready"; }
};

std::expected<status_report, std::string> parse_status(std::string_view body);

} // namespace tidepool::ctl
