#include "shards/runtime/queue_registry.hh"

#include "shards/runtime/logger.hh"

#include <array>
#include <seastar/core/metrics.hh>
#include <seastar/core/on_internal_error.hh>

namespace tidepool {

namespace sm = ss::metrics;

std::string_view name(queue_kind k) noexcept {
    constexpr std::array<std::string_view, 4> names{"mailbox", "local queue", "bus", "latest cell"};
    return names[static_cast<size_t>(k)];
}

std::string_view name(overflow p) noexcept {
    constexpr std::array<std::string_view, 4> names{
        "reject new", "wait with deadline", "drop oldest", "latest wins"};
    return names[static_cast<size_t>(p)];
}

registered_queue::registered_queue(const queue_spec& s, uint64_t capacity, queue_registry& registry)
    : _registry(registry), spec(s) {
    counts.capacity = capacity;
    for (const auto& other : registry._queues) {
        if (other.spec.name == s.name) {
            ss::on_internal_error(runtime_log, fmt::format("queue {} is registered twice", s.name));
        }
    }
    const std::vector<sm::label_instance> label{sm::label("queue")(std::string(s.name))};
    _metrics.add_group(
        "queue", {
                     sm::make_gauge(
                         "depth", [this] { return counts.depth; },
                         sm::description("Entries in the queue"), label),
                     sm::make_gauge(
                         "capacity", [this] { return counts.capacity; },
                         sm::description("Most entries it takes"), label),
                     sm::make_counter(
                         "done_total", [this] { return counts.done; },
                         sm::description("Entries finished"), label),
                     sm::make_counter(
                         "dropped_total",
                         [this] { return counts.refused + counts.timed_out + counts.dropped; },
                         sm::description("Entries refused because it was full, timed out waiting, "
                                         "or pushed out by newer ones"),
                         label),
                     sm::make_counter(
                         "canceled_total", [this] { return counts.canceled; },
                         sm::description("Entries refused because it was closed"), label),
                     sm::make_counter(
                         "aborted_total", [this] { return counts.aborted; },
                         sm::description("Entries still in flight at the drain deadline"), label),
                 });
    registry._queues.push_back(*this);
}

registered_queue::~registered_queue() {
    _registry._queues.erase(_registry._queues.iterator_to(*this));
}

size_t queue_registry::crowded() const noexcept {
    size_t n = 0;
    for (const auto& q : _queues) {
        n += q.spec.policy != overflow::latest_wins && q.counts.depth * 10 >= q.counts.capacity * 9
                 ? 1
                 : 0;
    }
    return n;
}

std::string queue_table(std::span<const queue_spec* const> specs) {
    std::string out = "| queue | kind | capacity | producer → consumer | when full | counted "
                      "|\n|---|---|---|---|---|---|\n";
    for (const auto* s : specs) {
        out += fmt::format("| `{}` | {} | {} | {} → {} | {} | `{}` |\n", s->name, name(s->kind),
            s->capacity, s->producer, s->consumer, name(s->policy), s->counted);
    }
    return out;
}

} // namespace tidepool
