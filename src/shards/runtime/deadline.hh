// The moment a request is worth nothing any more. It travels with the request, across cores too:
// every core reads the same monotonic clock.
#pragma once

#include "shards/base/ss.hh"

#include <chrono>
#include <seastar/core/lowres_clock.hh>

namespace tidepool {

class deadline {
    ss::lowres_clock::time_point _at = ss::lowres_clock::time_point::max();

public:
    deadline() = default; // never
    explicit deadline(ss::lowres_clock::time_point at) : _at(at) {}
    static deadline in(std::chrono::milliseconds wait) {
        return deadline(ss::lowres_clock::now() + wait);
    }

    ss::lowres_clock::time_point at() const noexcept { return _at; }
    bool expired() const noexcept { return ss::lowres_clock::now() >= _at; }
    // The earlier of this and `wait` from now: a step may take less than what is left, never more.
    deadline no_later_than(std::chrono::milliseconds wait) const {
        return deadline(std::min(_at, ss::lowres_clock::now() + wait));
    }
};

} // namespace tidepool
