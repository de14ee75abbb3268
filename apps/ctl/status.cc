// `tidepoolctl status`: what a node does, once or again and again.
#include "commands.hh"

#include "http_client.hh"
#include "proto/base/json_out.hh"
#include "status_report.hh"
#include "text_table.hh"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>
#include <utility>

namespace tidepool::ctl {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::string_view default_target = "127.0.0.1:9600";

struct sample {
    status_report report;
    clock::time_point taken;
};

outcome<http_target> target_of(const arguments& args) {
    if (const auto given = args.value("--ops")) {
        return parse_target(*given);
    }
    const char* variable = std::getenv("TIDEPOOL_OPS_ADDRESS");
    return parse_target(variable != nullptr ? variable : default_target);
}

outcome<sample> take_sample(const http_target& target) {
    const auto body = http_get(target, "/v1/status");
    if (!body) {
        return std::unexpected(body.error());
    }
    auto report = parse_status(*body);
    if (!report) {
        return fail(exit_code::unreachable,
            fmt::format("{}: the answer {}", target.text(), report.error()));
    }
    return sample{std::move(*report), clock::now()};
}

std::string bytes_text(uint64_t bytes) {
    constexpr std::string_view units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    auto value = static_cast<double>(bytes);
    while (value >= 1024 && unit + 1 < std::size(units)) {
        value /= 1024;
        ++unit;
    }
    return fmt::format("{:.{}f} {}", value, unit == 0 ? 0 : 1, units[unit]);
}

// Text of a status screen. With an earlier sample counters become rates between the two.
class status_view {
    const sample& _now;
    const sample* _before; // null: no rates
    bool _watching;
    double _elapsed_s = 0;

public:
    status_view(const sample& now, const sample* before, bool watching)
        : _now(now), _before(before), _watching(watching) {
        // A node that restarted counts from zero again; a rate over that would be nonsense.
        if (_before != nullptr && _before->report.uptime_s > _now.report.uptime_s) {
            _before = nullptr;
        }
        if (_before != nullptr) {
            _elapsed_s = std::chrono::duration<double>(_now.taken - _before->taken).count();
        }
    }

    std::string str() const {
        return fmt::format("{}\n{}\n{}\n{}", heading(), cores(), queues(), fibers());
    }

private:
    std::string heading() const {
        const auto& r = _now.report;
        auto out = fmt::format("{} {}  {}  up {:.0f} s  configuration {}\n", r.node, r.version,
            r.phase, r.uptime_s, r.config_version);
        if (!r.missing.empty()) {
            out += fmt::format("missing: {}\n", fmt::join(r.missing, ", "));
        }
        std::vector<std::string> steps;
        for (const auto& p : r.phases) {
            steps.push_back(fmt::format("{} {:.0f} ms", p.phase, p.after_ms));
        }
        return steps.empty() ? out : out + fmt::format("phases: {}\n", fmt::join(steps, ", "));
    }

    std::string cores() const {
        text_table table(
            {"core", "busy", "connections", "inflight", "requests", "requests/s", "memory", "of"});
        for (const auto& c : _now.report.cores) {
            const auto* before = core_before(c.core);
            table.add_row({fmt::to_string(c.core), fmt::format("{:.1f}%", 100 * c.busy),
                fmt::to_string(c.connections), fmt::to_string(c.inflight),
                fmt::to_string(c.requests_total),
                before ? rate(before->requests_total, c.requests_total) : "-",
                bytes_text(c.memory_used_bytes), bytes_text(c.memory_total_bytes)});
        }
        return table.str();
    }

    std::string queues() const {
        const std::string_view per = _watching ? "/s" : "";
        text_table table({"queue", "kind", "depth", "capacity", fmt::format("done{}", per),
            fmt::format("refused{}", per), fmt::format("dropped{}", per),
            fmt::format("aborted{}", per)});
        for (const auto& q : _now.report.queues) {
            const auto* before = queue_before(q);
            table.add_row({q.queue, q.kind, fmt::to_string(q.depth), fmt::to_string(q.capacity),
                counter(before, q, &queue_status::done_total),
                counter(before, q, &queue_status::refused_total),
                counter(before, q, &queue_status::dropped_total),
                counter(before, q, &queue_status::aborted_total)});
        }
        return table.str();
    }

    std::string fibers() const {
        text_table table({"fiber", "kind", "core", "restarts"});
        for (const auto& f : _now.report.fibers) {
            table.add_row({f.name, f.kind, fmt::to_string(f.core), fmt::to_string(f.restarts)});
        }
        return table.str();
    }

    const core_status* core_before(uint64_t core) const {
        if (_before == nullptr) {
            return nullptr;
        }
        const auto& all = _before->report.cores;
        const auto found = std::ranges::find(all, core, &core_status::core);
        return found == all.end() ? nullptr : &*found;
    }

    const queue_status* queue_before(const queue_status& now) const {
        if (_before == nullptr) {
            return nullptr;
        }
        const auto& all = _before->report.queues;
        const auto found = std::ranges::find_if(
            all, [&](const auto& q) { return q.queue == now.queue && q.kind == now.kind; });
        return found == all.end() ? nullptr : &*found;
    }

    std::string rate(uint64_t before, uint64_t now) const {
        if (now < before || _elapsed_s <= 0) {
            return "-";
        }
        return fmt::format("{:.1f}", static_cast<double>(now - before) / _elapsed_s);
    }

    std::string counter(const queue_status* before, const queue_status& now,
        uint64_t queue_status::* member) const {
        if (!_watching) {
            return fmt::to_string(now.*member);
        }
        return before != nullptr ? rate(before->*member, now.*member) : "-";
    }
};

// Everything but our own line breaks made harmless: names come from the node.
std::string screen_text(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const auto line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        out += printable(line) + "\n";
    }
    return out;
}

volatile std::sig_atomic_t stop_requested = 0;

void request_stop(int) {
    stop_requested = 1;
}

// Without SA_RESTART, so that the sleep or the poll we are in ends at once.
void stop_on_signals() {
    struct sigaction action{};
    action.sa_handler = request_stop;
    ::sigaction(SIGINT, &action, nullptr);
    ::sigaction(SIGTERM, &action, nullptr);
}

void sleep_until(clock::time_point until) {
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(until - clock::now());
    if (left.count() > 0) {
        const timespec pause{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
        ::nanosleep(&pause, nullptr);
    }
}

// On a terminal over the previous screen: home, each line cleared to its end, the rest cleared
// below. That neither flickers nor leaves anything to restore when the program ends.
void draw(std::string_view text, bool terminal) {
    if (!terminal) {
        print_line(text);
        return;
    }
    std::string out = "\x1b[H";
    for (const char c : text) {
        out += c == '\n' ? "\x1b[K\n" : std::string(1, c);
    }
    out += "\x1b[J";
    std::fwrite(out.data(), 1, out.size(), stdout);
    std::fflush(stdout);
}

outcome<std::chrono::milliseconds> interval_of(const arguments& args) {
    const auto text = args.value("--watch").value_or("1");
    double seconds = 0;
    const auto* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, seconds);
    if (parsed.ec != std::errc{} || parsed.ptr != end || !(seconds >= 0.1 && seconds <= 3600)) {
        return fail(exit_code::usage, "--watch needs a number of seconds from 0.1 to 3600");
    }
    return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

void show_loss(const arguments& args, const failure& lost, bool terminal) {
    if (args.json()) {
        print_line(
            std::move(json_object().add("error", lost.message).add("code", name(lost.code))).str());
    } else {
        draw(screen_text(fmt::format("{}\n", lost.message)), terminal);
    }
}

// The first sample must succeed; later ones may fail, since to watch a node restart is one of the
// reasons to watch.
answer watch(const arguments& args, const http_target& target, std::chrono::milliseconds interval) {
    stop_on_signals();
    const bool terminal = ::isatty(STDOUT_FILENO) == 1;
    std::optional<sample> before;
    bool first = true;
    auto next = clock::now();
    while (!stop_requested && !std::ferror(stdout)) {
        auto now = take_sample(target);
        if (stop_requested) {
            break;
        }
        if (!now && first) {
            return std::unexpected(now.error());
        }
        first = false;
        if (!now) {
            show_loss(args, now.error(), terminal);
            before.reset();
        } else {
            const status_view view(*now, before ? &*before : nullptr, true);
            args.json() ? print_line(now->report.document)
                        : draw(screen_text(view.str()), terminal);
            before = std::move(*now);
        }
        next = std::max(next + interval, clock::now());
        sleep_until(next);
    }
    return exit_code::ok;
}

} // namespace

answer status(const arguments& args) {
    const auto target = target_of(args);
    if (!target) {
        return std::unexpected(target.error());
    }
    if (args.has("--watch")) {
        const auto interval = interval_of(args);
        return interval ? watch(args, *target, *interval) : std::unexpected(interval.error());
    }
    const auto now = take_sample(*target);
    if (!now) {
        return std::unexpected(now.error());
    }
    const status_view view(*now, nullptr, false);
    auto text = args.json() ? now->report.document : screen_text(view.str());
    if (text.ends_with('\n')) {
        text.pop_back();
    }
    print_line(text);
    return now->report.ready() ? exit_code::ok : exit_code::no;
}

} // namespace tidepool::ctl
