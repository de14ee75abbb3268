#include "shards/echo/echo_service.hh"

#include "shards/echo/logger.hh"

#include <array>
#include <seastar/core/coroutine.hh>

namespace tidepool {

ss::logger echo_log("echo");

namespace {

constexpr queue_spec calls_spec{.name = "echo.calls",
    .kind = queue_kind::mailbox,
    .capacity = "`echo.mailbox_capacity` a pair of cores",
    .producer = "edge, any core",
    .consumer = "echo_service, owner of the key",
    .policy = overflow::reject_new,
    .counted = "queue_dropped_total"};

constexpr queue_spec announcements_spec{.name = "echo.announcements",
    .kind = queue_kind::mailbox,
    .capacity = "256 a pair of cores",
    .producer = "echo_service, owner of the key",
    .consumer = "echo_service, every core",
    .policy = overflow::reject_new,
    .counted = "queue_dropped_total"};

constexpr queue_spec events_spec{.name = "echo.events",
    .kind = queue_kind::bus,
    .capacity = "1024 a core",
    .producer = "echo_service",
    .consumer = "event-stream subscribers of the core",
    .policy = overflow::drop_oldest,
    .counted = "bus_lagged_total"};

constexpr unsigned announcements_capacity = 256;

} // namespace

std::span<const queue_spec* const> echo_service::queues() {
    static constexpr std::array<const queue_spec*, 3> specs{
        &calls_spec, &announcements_spec, &events_spec};
    return specs;
}

echo_service::echo_service(ss::sharded<runtime>& cores, ss::sharded<echo_service>& self)
    : _runtime(cores.local()),
      _calls(calls_spec, _runtime.conf->echo.mailbox_capacity, _runtime.queues,
          _runtime.hops(hop_level::request, _runtime.conf->echo.mailbox_capacity), self),
      _announcements(announcements_spec, announcements_capacity, _runtime.queues,
          _runtime.hops(hop_level::background, announcements_capacity), self),
      _events(events_spec, _runtime.queues) {}

ss::future<result<loan<echo_answer>>> echo_service::get(std::string key, deadline dl) {
    const auto to = owner_of(key);
    return _calls.try_call(
        to, dl, [key = std::move(key)](echo_service& s) { return s.local_get(key); });
}

ss::future<result<uint64_t>> echo_service::put(std::string key, std::string value, deadline dl) {
    const auto to = owner_of(key);
    return _calls.try_call(
        to, dl, [key = std::move(key), value = std::move(value)](echo_service& s) {
            return s.local_put(key, value);
        });
}

ss::future<result<void>> echo_service::erase(std::string key, deadline dl) {
    const auto to = owner_of(key);
    return _calls.try_call(to, dl, [key = std::move(key)](echo_service& s) {
        s.assert_owner();
        return s._core.erase(key);
    });
}

result<loan<echo_answer>> echo_service::local_get(std::string_view key) const {
    assert_owner();
    auto found = _core.get(key);
    if (!found) {
        return std::unexpected(std::move(found.error()));
    }
    return loan(std::make_unique<echo_answer>(std::move(*found), ss::this_shard_id()));
}

result<uint64_t> echo_service::local_put(std::string_view key, std::string_view value) {
    assert_owner();
    const auto& limits = _runtime.conf->echo;
    auto version = _core.put(
        key, value, {.keys_max = limits.keys_max, .value_max_bytes = limits.value_max_bytes});
    if (version) {
        announce({std::string(key), *version});
    }
    return version;
}

void echo_service::announce(const echo_event& event) {
    for (unsigned to = 0; to < ss::smp::count; ++to) {
        // The answer says only whether there was room, and the mailbox has counted that.
        (void)_announcements.try_call(
            to, deadline::in(std::chrono::seconds(1)), [event](echo_service& s) -> result<void> {
                s._events.publish(event);
                return {};
            });
    }
}

ss::future<> echo_service::close(deadline drain) {
    _events.close();
    co_await _calls.close(drain);
    co_await _announcements.close(drain);
}

ss::future<bool> echo_service::drained(deadline until) {
    const bool calls = co_await _calls.stop(until);
    const bool announcements = co_await _announcements.stop(until);
    co_return calls&& announcements;
}

} // namespace tidepool
