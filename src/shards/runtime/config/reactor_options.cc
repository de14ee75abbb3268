#include "shards/runtime/config/reactor_options.hh"

#include <fmt/format.h>

namespace tidepool {

std::vector<std::string> reactor_options(const reactor_config& c) {
    std::vector<std::string> out;
    auto option = [&](std::string name, const std::string& value) {
        if (!value.empty()) {
            out.push_back(std::move(name));
            out.push_back(value);
        }
    };
    option("--smp", c.cores ? fmt::to_string(c.cores) : "");
    option("--memory", c.memory);
    option("--reactor-backend", c.backend == "auto" ? "" : c.backend);
    option("--cpuset", c.cpuset);
    option("--hugepages", c.hugepages);
    option("--io-properties-file", c.io_properties_file);
    option("--blocked-reactor-notify-ms", fmt::to_string(c.blocked_notify_ms));
    option("--lock-memory", c.lock_memory ? "1" : "0");
    // The node handles its signals itself; Seastar's own handler would stop the reactor under our
    // feet.
    out.emplace_back("--no-handle-interrupt");
    if (c.poll) {
        out.emplace_back("--poll-mode");
    }
    if (c.overprovisioned) {
        out.emplace_back("--overprovisioned");
    }
    if (c.network == "dpdk") {
        option("--network-stack", "native");
        out.emplace_back("--dpdk-pmd");
    }
    return out;
}

} // namespace tidepool
