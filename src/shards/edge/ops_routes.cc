#include "shards/edge/ops_routes.hh"

#include "proto/base/json_out.hh"

#include <seastar/core/coroutine.hh>
#include <seastar/core/memory.hh>

namespace tidepool {

namespace {

constexpr route_options probe{.always = true};

std::string missing_list(const lifecycle& life) {
    json_array out;
    for (const auto& what : life.missing()) {
        out.add(std::string_view(what));
    }
    return std::move(out).str();
}

answer_future ready(runtime& r) {
    const auto& life = r.life;
    json_object out;
    out.add("ready", life.ready()).add("phase", name(life.current()));
    if (life.ready()) {
        return reply_json(std::move(out).str());
    }
    r.metrics.not_ready.add(life.current() == phase::draining ? "draining" : "starting");
    out.add("missing", raw_json{missing_list(life)}).add("retry_after", 5);
    return reply({.status = 503, .body = std::move(out).str(), .headers = "Retry-After: 5\r\n"});
}

// One core's part of /v1/status, as JSON of its own memory.
struct core_status {
    std::string core;
    std::string queues; // comma-separated objects
    std::string fibers;
};

std::string queue_json(const registered_queue& q) {
    const auto& c = q.counts;
    json_object out;
    out.add("queue", q.spec.name).add("kind", name(q.spec.kind)).add("core", ss::this_shard_id());
    out.add("depth", c.depth).add("capacity", c.capacity).add("done_total", c.done);
    out.add("refused_total", c.refused + c.timed_out + c.canceled).add("dropped_total", c.dropped);
    out.add("aborted_total", c.aborted);
    return std::move(out).str();
}

void append_listed(std::string& list, std::string item) {
    list += list.empty() ? "" : ",";
    list += item;
}

core_status collect(runtime& r) {
    core_status out;
    const auto memory = ss::memory::stats();
    json_object core;
    core.add("core", ss::this_shard_id()).add("busy", r.busy());
    core.add("connections", r.admit.connections()).add("inflight", r.admit.inflight());
    core.add("requests_total", r.requests_total)
        .add("memory_used_bytes", memory.allocated_memory());
    core.add("memory_total_bytes", memory.total_memory());
    out.core = std::move(core).str();
    for (const auto& q : r.queues.queues()) {
        append_listed(out.queues, queue_json(q));
    }
    for (const auto& f : r.fibers.alive()) {
        json_object fiber;
        fiber.add("kind", f.kind)
            .add("name", f.name)
            .add("core", ss::this_shard_id())
            .add("restarts", f.restarts);
        append_listed(out.fibers, std::move(fiber).str());
    }
    return out;
}

std::string phases_json(const lifecycle& life) {
    json_array out;
    for (const auto& step : life.history()) {
        json_object row;
        row.add("phase", name(step.at)).add("after_ms", step.after.count());
        out.add(raw_json{std::move(row).str()});
    }
    return std::move(out).str();
}

answer_future status(ss::sharded<runtime>& cores) {
    auto& here = cores.local();
    core_status all;
    for (unsigned core = 0; core < ss::smp::count; ++core) {
        // Ops traffic is rare and bounded by its listener, so the plain hop will do.
        const auto one = co_await cores.invoke_on(core, [](runtime& r) { return collect(r); });
        append_listed(all.core, one.core);
        append_listed(all.queues, one.queues);
        append_listed(all.fibers, one.fibers);
    }
    json_object out;
    out.add("node", here.conf->node.name).add("version", product_version());
    out.add("phase", name(here.life.current())).add("missing", raw_json{missing_list(here.life)});
    out.add("uptime_s", here.life.uptime().count()).add("config_version", here.conf.version());
    out.add("cores", raw_json{"[" + all.core + "]"})
        .add("queues", raw_json{"[" + all.queues + "]"});
    out.add("phases", raw_json{phases_json(here.life)})
        .add("fibers", raw_json{"[" + all.fibers + "]"});
    co_return answer{http::response{.body = std::move(out).str()}, nullptr};
}

answer_future metrics() {
    auto text = co_await metrics_text();
    co_return answer{http::response{.content_type = "text/plain; version=0.0.4; charset=utf-8",
                         .body = std::move(text)},
        nullptr};
}

} // namespace

std::string_view product_version() noexcept {
    return TIDEPOOL_VERSION;
}

void add_health_route(http_server& server) {
    server.routes.add(
        http::method::get, "/healthz",
        [](const request&) { return reply_json(R"({"alive":true})"); }, probe);
}

void add_ops_routes(http_server& server, ss::sharded<runtime>& cores) {
    using http::method;
    add_health_route(server);
    auto& here = cores.local();
    server.routes.add(
        method::get, "/readyz", [&here](const request&) { return ready(here); }, probe);
    server.routes.add(
        method::get, "/version",
        [](const request&) {
            json_object out;
            out.add("name", "tidepool").add("version", product_version());
            return reply_json(std::move(out).str());
        },
        probe);
    server.routes.add(method::get, "/metrics", [](const request&) { return metrics(); }, probe);
    server.routes.add(
        method::get, "/v1/status", [&cores](const request&) { return status(cores); }, probe);
}

} // namespace tidepool
