// Where the node is in its life, and what it still misses to be ready. Each core has a copy,
// changed through the node, so that a probe answers without a hop.
#pragma once

#include "shards/runtime/owner.hh"

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tidepool {

enum class phase : uint8_t { starting, ready, draining, stopped };

std::string_view name(phase) noexcept;

class lifecycle : public owned {
public:
    struct step {
        phase at;
        std::chrono::milliseconds after; // since the process began
    };

    explicit lifecycle(std::chrono::steady_clock::time_point began) : _began(began) {
        enter(phase::starting);
    }

    void enter(phase);
    phase current() const noexcept { return _phase; }
    const std::vector<step>& history() const noexcept { return _history; }
    std::chrono::seconds uptime() const;

    // Things a node needs to be ready: "listeners_bound", "queues_ok", ...
    void lacks(std::string what) { _missing.insert(std::move(what)); }
    void has(const std::string& what) { _missing.erase(what); }
    const std::set<std::string>& missing() const noexcept { return _missing; }

    // Ready: in the ready phase, and nothing is missing.
    bool ready() const noexcept { return _phase == phase::ready && _missing.empty(); }

private:
    std::chrono::steady_clock::time_point _began;
    phase _phase = phase::starting;
    std::vector<step> _history; // at most one entry a phase: phases only go forward
    std::set<std::string> _missing;
};

} // namespace tidepool
