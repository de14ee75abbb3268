// Circuit breaker, pure: outcomes and the time come in, decisions come out.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

namespace tidepool {

struct breaker_policy {
    std::chrono::milliseconds window_ms{30'000};   // outcomes older than this are forgotten
    double trip_ratio = 0.5;                       // failures / calls that opens it
    unsigned min_calls = 10;                       // too few calls say nothing
    std::chrono::milliseconds cooldown_ms{10'000}; // open for this long, then half-open
    unsigned probes = 3;                           // successes in a row that close it again
};

// closed --ratio reached--> open --cooldown--> half_open --probes succeed--> closed
//                            ^------ a probe fails ------'
// Owned by one core (the owner of its target). Every call that `allow` lets through must be
// reported once with the ticket it got; a ticket from an earlier state is ignored, so a late answer
// cannot close a new outage.
class breaker {
public:
    enum class state : uint8_t { closed, open, half_open };
    using time_point = std::chrono::steady_clock::time_point;
    struct ticket {
        bool allowed = false;
        uint32_t generation = 0;
    };

    explicit breaker(breaker_policy policy) : _policy(policy) {}

    ticket allow(time_point now);
    void report(ticket, bool success, time_point now);
    // A probe that was never sent gives its place back.
    void forget(ticket);

    state current(time_point now) const noexcept;
    unsigned calls(time_point now) const noexcept;
    unsigned failures(time_point now) const noexcept;

private:
    // The window slides in ten steps: memory is constant and an old burst leaves within a tenth of
    // a window.
    static constexpr size_t slots = 10;
    struct slot {
        int64_t epoch = -1;
        uint32_t calls = 0;
        uint32_t failures = 0;
    };

    breaker_policy _policy;
    std::array<slot, slots> _slots{};
    bool _closed = true;
    uint32_t _generation = 0;
    time_point _opened_at{};
    unsigned _probes_out = 0;
    unsigned _probes_good = 0;

    int64_t epoch(time_point now) const noexcept;
    slot& slot_at(time_point now);
    void open(time_point now);
    void close();
};

std::string_view name(breaker::state) noexcept;

} // namespace tidepool
