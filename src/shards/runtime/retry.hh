// Retrying calls to others: only what may be repeated, never past the deadline.
#pragma once

#include "proto/base/errc.hh"
#include "shards/base/backoff.hh"
#include "shards/runtime/deadline.hh"
#include "shards/runtime/metrics.hh"

#include <seastar/core/coroutine.hh>
#include <seastar/core/sleep.hh>

namespace tidepool {

// Says at the call that repeating it is harmless. Nothing else can be retried.
struct idempotent_t {
    explicit idempotent_t() = default;
};
inline constexpr idempotent_t idempotent{};

struct retry_context {
    std::string_view op; // for backoff_retries_total
    counter_family& retries;
    random_source& random;
    ss::abort_source& stop;
    backoff_policy policy = call_backoff;
};

// Runs `attempt` (returns future<result<T>>) until it succeeds, fails for good, the tries are used
// up or a pause would pass the deadline; the last answer is returned. `attempt` must outlive the
// future.
template <typename Attempt>
std::invoke_result_t<Attempt&> retry(
    retry_context context, idempotent_t, deadline dl, Attempt& attempt) {
    backoff pauses(context.policy);
    while (true) {
        auto answer = co_await attempt();
        if (answer || !info(answer.error().code).retryable || context.stop.abort_requested()) {
            co_return answer;
        }
        const auto pause = pauses.next(context.random);
        if (!pause || ss::lowres_clock::now() + *pause >= dl.at()) {
            co_return answer;
        }
        context.retries.add(context.op);
        try {
            co_await ss::sleep_abortable<ss::lowres_clock>(*pause, context.stop);
        } catch (const ss::sleep_aborted&) {
            co_return answer;
        }
    }
}

} // namespace tidepool
