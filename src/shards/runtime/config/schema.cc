#include "shards/runtime/config/schema.hh"

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <regex>
#include <utility>
#include <vector>

namespace tidepool {

namespace {

constexpr auto live = life::live;
constexpr auto restart = life::restart;

using set_result = std::expected<void, std::string>;

// The accessors below are generic lambdas so that one serves both a const and a mutable tree.

template <typename Access>
config_field number(std::string path, Access at, uint64_t least, uint64_t most, std::string unit,
    life lifetime, std::string sentence) {
    auto allowed = fmt::format("{}..{}", least, most);
    return {std::move(path), "whole number", std::move(unit), allowed, lifetime,
        std::move(sentence),
        [=](config& c, std::string_view, std::string_view text) -> set_result {
            uint64_t value = 0;
            auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value);
            if (ec == std::errc::result_out_of_range) {
                return std::unexpected("is out of range");
            }
            if (ec != std::errc{} || end != text.data() + text.size()) {
                return std::unexpected("is not a whole number");
            }
            if (value < least || value > most) {
                return std::unexpected("is out of range");
            }
            at(c) = value;
            return {};
        },
        [=](const config& c) { return fmt::to_string(at(c)); }};
}

template <typename Access>
config_field flag(std::string path, Access at, life lifetime, std::string sentence) {
    return {std::move(path), "yes or no", "", "true, false", lifetime, std::move(sentence),
        [=](config& c, std::string_view, std::string_view text) -> set_result {
            if (text != "true" && text != "false") {
                return std::unexpected("is neither true nor false");
            }
            at(c) = text == "true";
            return {};
        },
        [=](const config& c) { return at(c) ? "true" : "false"; }};
}

template <typename Access>
config_field choice(std::string path, Access at, std::vector<std::string> choices, life lifetime,
    std::string sentence) {
    auto allowed = fmt::format("{}", fmt::join(choices, ", "));
    return {std::move(path), "choice", "", allowed, lifetime, std::move(sentence),
        [=](config& c, std::string_view, std::string_view text) -> set_result {
            if (std::ranges::find(choices, text) == choices.end()) {
                return std::unexpected("is not one of the choices");
            }
            at(c) = std::string(text);
            return {};
        },
        [=](const config& c) { return at(c); }};
}

// Text that matches a pattern; `allowed` explains the pattern to people.
template <typename Access>
config_field text(std::string path, Access at, std::string pattern, std::string allowed,
    life lifetime, std::string sentence) {
    return {std::move(path), "text", "", std::move(allowed), lifetime, std::move(sentence),
        [=, shape = std::regex(pattern)](
            config& c, std::string_view, std::string_view value) -> set_result {
            // std::regex recurses per character: a length limit first.
            if (value.size() > 1'024) {
                return std::unexpected("is longer than 1024 characters");
            }
            if (!std::regex_match(value.begin(), value.end(), shape)) {
                return std::unexpected("has the wrong form");
            }
            at(c) = std::string(value);
            return {};
        },
        [=](const config& c) { return at(c); }};
}

const std::vector<std::string> log_levels{"trace", "debug", "info", "warn", "error"};

config_field level_map(std::string path, life lifetime, std::string sentence) {
    return {std::move(path), "choice", "", fmt::format("{}", fmt::join(log_levels, ", ")), lifetime,
        std::move(sentence),
        [](config& c, std::string_view key, std::string_view value) -> set_result {
            if (std::ranges::find(log_levels, value) == log_levels.end()) {
                return std::unexpected("is not one of the choices");
            }
            c.log.levels[std::string(key)] = std::string(value);
            return {};
        },
        [](const config& c) {
            std::vector<std::string> rows;
            for (const auto& [logger, level] : c.log.levels) {
                rows.push_back(fmt::format("{}: {}", yaml_quoted(logger), level));
            }
            return fmt::format("{{{}}}", fmt::join(rows, ", "));
        }};
}

constexpr uint64_t mebi = 1024 * 1024;
constexpr uint64_t hour_ms = 3'600'000;

bool is_address(std::string_view text) {
    const auto colon = text.rfind(':');
    if (colon == text.npos) {
        return false;
    }
    std::string host(text.substr(0, colon));
    const auto port_text = text.substr(colon + 1);
    uint64_t port = 0;
    const auto* end = port_text.data() + port_text.size();
    if (std::from_chars(port_text.data(), end, port).ptr != end || port < 1 || port > 65'535) {
        return false;
    }
    in6_addr parsed{};
    if (host.starts_with('[') && host.ends_with(']')) {
        return inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &parsed) == 1;
    }
    return inet_pton(AF_INET, host.c_str(), &parsed) == 1;
}

template <typename Access>
config_field address(std::string path, Access at, life lifetime, std::string sentence) {
    return {std::move(path), "text", "", "an IP address and a port, 127.0.0.1:8080 or [::1]:8080",
        lifetime, std::move(sentence),
        [=](config& c, std::string_view, std::string_view value) -> set_result {
            if (!is_address(value)) {
                return std::unexpected("is no address");
            }
            at(c) = std::string(value);
            return {};
        },
        [=](const config& c) { return at(c); }};
}

const char* const path_pattern = R"([^\x00-\x1f]*)";

#define AT(member) [](auto& c) -> auto& { return c.member; }

void add_reactor(std::vector<config_field>& f) {
    f.push_back(number("reactor.cores", AT(reactor.cores), 0, 1'024, "cores", restart,
        "How many cores the node takes; 0 takes all it may run on."));
    f.push_back(text("reactor.memory", AT(reactor.memory), R"((\d+[KMGT]?)?)",
        "a size such as 512M or 1G, or empty", restart,
        "Memory for all cores together, taken at start; empty takes what the machine has left."));
    f.push_back(
        choice("reactor.backend", AT(reactor.backend), {"auto", "epoll", "linux-aio", "io_uring"},
            restart, "Which kernel interface drives the reactor; auto lets Seastar choose."));
    f.push_back(text("reactor.cpuset", AT(reactor.cpuset), R"((\d+(-\d+)?(,\d+(-\d+)?)*)?)",
        "a list such as 0-3,8, or empty", restart,
        "The CPUs to run on, one core of the node pinned to each."));
    f.push_back(text("reactor.hugepages", AT(reactor.hugepages), path_pattern,
        "a hugetlbfs mount point, or empty", restart,
        "Where to take memory as huge pages from; empty uses ordinary pages."));
    f.push_back(flag("reactor.poll", AT(reactor.poll), restart,
        "Busy-poll: lowest latency, and every core of the node shows 100 % CPU even when idle."));
    f.push_back(flag("reactor.overprovisioned", AT(reactor.overprovisioned), restart,
        "The machine is shared with others: do not pin threads, sleep when idle."));
    f.push_back(flag("reactor.lock_memory", AT(reactor.lock_memory), restart,
        "Lock all memory so that it is never swapped out."));
    f.push_back(text("reactor.io_properties_file", AT(reactor.io_properties_file), path_pattern,
        "a path, or empty", restart,
        "What iotune measured of the disk, for Seastar's I/O scheduler."));
    f.push_back(choice("reactor.network", AT(reactor.network), {"posix", "dpdk"}, restart,
        "The kernel's network stack, or Seastar's own over DPDK (needs a Seastar built with it)."));
    f.push_back(number("reactor.blocked_notify_ms", AT(reactor.blocked_notify_ms), 1, hour_ms, "ms",
        restart, "A task that holds its core longer than this is reported in the log."));
}

void add_node(std::vector<config_field>& f) {
    f.push_back(
        text("node.name", AT(node.name), R"([A-Za-z0-9._-]{1,64})", "1 to 64 of A-Z a-z 0-9 . _ -",
            restart, "The node's name; capabilities with an audience must name it."));
    f.push_back(text("node.data_dir", AT(node.data_dir), R"([^\x00-\x1f]+)", "a path", restart,
        "Where journals and other durable state live."));
    f.push_back(number("node.drain_deadline_ms", AT(node.drain_deadline_ms), 1, 600'000, "ms", live,
        "On stop, how long work in flight may take before it is aborted and counted."));
}

void add_http(std::vector<config_field>& f) {
    f.push_back(
        address("http.listen", AT(http.listen), restart, "Where the public HTTP listener binds."));
    f.push_back(number("http.backlog", AT(http.backlog), 1, 65'535, "connections", restart,
        "Connections the kernel may hold ready before they are accepted."));
    f.push_back(number("http.header_max_bytes", AT(http.header_max_bytes), 1'024, 64 * 1024,
        "bytes", live, "Longest request line and headers together; beyond it the answer is 431."));
    f.push_back(number("http.body_max_bytes", AT(http.body_max_bytes), 0, 64 * mebi, "bytes", live,
        "Longest request body however it is framed or packed; beyond it the answer is 413."));
    f.push_back(number("http.expansion_max_ratio", AT(http.expansion_max_ratio), 1, 1'000, "times",
        live,
        "How much a gzip or deflate body may grow when unpacked; beyond it the answer is 413."));
    f.push_back(number("http.read_timeout_ms", AT(http.read_timeout_ms), 10, hour_ms, "ms", live,
        "A head, and each 64 KiB of a body, must arrive within this."));
    f.push_back(number("http.write_timeout_ms", AT(http.write_timeout_ms), 10, hour_ms, "ms", live,
        "A client that takes no answer for this long is disconnected."));
    f.push_back(number("http.idle_timeout_ms", AT(http.idle_timeout_ms), 10, hour_ms, "ms", live,
        "A connection without a request for this long is closed."));
    f.push_back(number("http.request_deadline_ms", AT(http.request_deadline_ms), 1, hour_ms, "ms",
        live,
        "The deadline that travels with a request; a smaller X-Deadline-Ms of the client wins."));
    f.push_back(number("http.pipeline_max", AT(http.pipeline_max), 1, 1'024, "requests", live,
        "Pipelined requests of one connection that may be in flight together."));
    f.push_back(number("http.sse_queue_max", AT(http.sse_queue_max), 1, 65'536, "events", live,
        "Events held for a slow subscriber; one that falls further behind is dropped."));
    f.push_back(number("http.sse_subscribers_max", AT(http.sse_subscribers_max), 1, 1'000'000,
        "subscribers", live, "Event-stream subscribers of the node, split evenly over its cores."));
    f.push_back(flag("http.tls.enabled", AT(http.tls.enabled), restart,
        "Serve HTTPS (TLS 1.3 only) instead of HTTP."));
    f.push_back(text("http.tls.cert_file", AT(http.tls.cert_file), path_pattern, "a path", restart,
        "Certificate chain in PEM; a changed file is picked up without a restart."));
    f.push_back(text("http.tls.key_file", AT(http.tls.key_file), path_pattern, "a path", restart,
        "Private key in PEM; a changed file is picked up without a restart."));
    f.push_back(address("ops.listen", AT(ops.listen), restart,
        "Where health, readiness, metrics and status are served."));
    f.push_back(number("ops.connections_max", AT(ops.connections_max), 1, 65'535, "connections",
        live, "Connections to the ops listener, split evenly over the cores."));
}

void add_admission(std::vector<config_field>& f) {
    f.push_back(number("admission.connections_max", AT(admission.connections_max), 1, 10'000'000,
        "connections", live, "Public connections of the node, split evenly over its cores."));
    f.push_back(number("admission.connections_per_ip_max", AT(admission.connections_per_ip_max), 1,
        10'000'000, "connections", live,
        "Public connections of one address, split evenly over the cores."));
    f.push_back(
        number("admission.inflight_max", AT(admission.inflight_max), 1, 1'000'000, "requests", live,
            "Requests being worked on, split evenly over the cores; beyond it the answer is 429."));
    f.push_back(number("admission.requests_per_s", AT(admission.requests_per_s), 0, 1'000'000'000,
        "requests/s", live,
        "Requests of the node in a second, split evenly over the cores; 0 is no limit."));
    f.push_back(number("admission.requests_per_s_per_ip", AT(admission.requests_per_s_per_ip), 0,
        1'000'000'000, "requests/s", live, "The same for one address; 0 is no limit."));
    f.push_back(number("admission.bytes_per_s", AT(admission.bytes_per_s), 0, 1'000'000'000'000,
        "bytes/s", live,
        "Request bytes of the node in a second, split evenly over the cores; 0 is no limit."));
    f.push_back(number("admission.bytes_per_s_per_ip", AT(admission.bytes_per_s_per_ip), 0,
        1'000'000'000'000, "bytes/s", live, "The same for one address; 0 is no limit."));
    f.push_back(number("admission.memory_max_bytes", AT(admission.memory_max_bytes), mebi,
        1'024 * 1'024 * mebi, "bytes", live,
        "Memory for request bodies, split evenly over the cores; taken before a body is read."));
    f.push_back(flag("auth.required", AT(auth.required), live,
        "Every public request must carry a capability (Authorization: Bearer)."));
    f.push_back(text("auth.keys_file", AT(auth.keys_file), path_pattern, "a path, or empty", live,
        "Root keys, one `id hex` a line, mode 0600; read again on SIGHUP."));
}

void add_groups(std::vector<config_field>& f) {
    auto shares = [&](std::string group, auto at, std::string what) {
        f.push_back(number("groups." + group + "_shares", at, 1, 10'000, "shares", live,
            "CPU shares of the scheduling group for " + what + "."));
    };
    shares("ops", AT(groups.ops_shares), "health, metrics and status");
    shares("edge", AT(groups.edge_shares), "client connections and what they ask for");
    shares("lookup", AT(groups.lookup_shares), "lookups at other nodes");
    shares("gossip", AT(groups.gossip_shares), "gossip");
    shares("commit", AT(groups.commit_shares), "journal writes");
    shares("feed", AT(groups.feed_shares), "market data");
    shares("crypto", AT(groups.crypto_shares), "signatures");
    shares("background", AT(groups.background_shares), "everything that can wait");
}

void add_log_and_echo(std::vector<config_field>& f) {
    f.push_back(choice("log.level", AT(log.level), log_levels, live,
        "The level of every logger not named below."));
    f.push_back(choice("log.format", AT(log.format), {"text", "json"}, restart,
        "Lines for people or for machines."));
    f.push_back(level_map("log.levels.*", live, "The level of one logger, by its name."));
    f.push_back(flag(
        "echo.enabled", AT(echo.enabled), restart, "Serve the example service under /v1/echo."));
    f.push_back(
        number("echo.mailbox_capacity", AT(echo.mailbox_capacity), 1, 8'192, "calls", restart,
            "Calls from one core to another that may be in flight; beyond it the answer is 429."));
    f.push_back(number("echo.value_max_bytes", AT(echo.value_max_bytes), 1, mebi, "bytes", live,
        "Longest value that may be stored."));
    f.push_back(number("echo.keys_max", AT(echo.keys_max), 1, 100'000'000, "keys", live,
        "Keys one core holds; beyond it a new key is refused with 429."));
}

#undef AT

std::vector<config_field> make_schema() {
    std::vector<config_field> fields;
    add_reactor(fields);
    add_node(fields);
    add_http(fields);
    add_admission(fields);
    add_groups(fields);
    add_log_and_echo(fields);
    return fields;
}

size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<size_t> row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j) {
        row[j] = j;
    }
    for (size_t i = 1; i <= a.size(); ++i) {
        size_t diagonal = std::exchange(row[0], i);
        for (size_t j = 1; j <= b.size(); ++j) {
            const size_t above = row[j];
            row[j] =
                std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
            diagonal = above;
        }
    }
    return row[b.size()];
}

} // namespace

std::string yaml_quoted(std::string_view value) {
    std::string out = "'";
    for (const char c : value) {
        out += c;
        if (c == '\'') {
            out += c;
        }
    }
    return out + "'";
}

std::span<const config_field> config_schema() {
    static const std::vector<config_field> fields = make_schema();
    return fields;
}

const config_field* find_field(std::string_view key) {
    for (const auto& field : config_schema()) {
        if (field.path == key) {
            return &field;
        }
        const std::string_view stem = std::string_view(field.path).substr(0, field.path.size() - 1);
        if (field.is_map() && key.starts_with(stem) && key.size() > stem.size()) {
            return &field;
        }
    }
    return nullptr;
}

std::optional<std::string> closest_key(std::string_view key) {
    if (key.size() > 128) {
        return std::nullopt;
    }
    std::optional<std::string> best;
    size_t best_distance = 1 + key.size() / 3;
    for (const auto& field : config_schema()) {
        const auto distance = edit_distance(key, field.path);
        if (distance < best_distance) {
            best_distance = distance;
            best = field.path;
        }
    }
    return best;
}

} // namespace tidepool
