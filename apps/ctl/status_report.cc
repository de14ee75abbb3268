#include "status_report.hh"

#include <fmt/format.h>
#include <map>
#include <simdjson.h>
#include <utility>

namespace tidepool::ctl {

namespace {

namespace dom = simdjson::dom;

// Remembers the first problem and gives empty values from then on, so that reading stays plain
// code.
class status_reader {
    std::string _problem;

public:
    const std::string& problem() const { return _problem; }

    std::string text(dom::element in, std::string_view where, std::string_view key) {
        return std::string(get<std::string_view>(in, where, key, "text"));
    }
    uint64_t count(dom::element in, std::string_view where, std::string_view key) {
        return get<uint64_t>(in, where, key, "a whole number");
    }
    double number(dom::element in, std::string_view where, std::string_view key) {
        return get<double>(in, where, key, "a number");
    }

    // Calls `read(element, "cores[0]")` for each element.
    template <typename Read>
    void each(dom::element in, std::string_view key, Read read) {
        dom::array items;
        if (!get_into(items, in, key, key, "a list")) {
            return; // an array that was not filled must not be walked
        }
        size_t at = 0;
        for (dom::element item : items) {
            if (_problem.empty()) {
                read(item, fmt::format("{}[{}]", key, at++));
            }
        }
    }

    void refuse(std::string problem) {
        if (_problem.empty()) {
            _problem = std::move(problem);
        }
    }

private:
    template <typename Value>
    Value get(
        dom::element in, std::string_view where, std::string_view key, std::string_view type) {
        Value value{};
        const auto full = where.empty() ? std::string(key) : fmt::format("{}.{}", where, key);
        return get_into(value, in, key, full, type) ? value : Value{};
    }

    template <typename Value>
    bool get_into(Value& out, dom::element in, std::string_view key, std::string_view full_name,
        std::string_view type) {
        dom::element found;
        if (in[key].get(found) != simdjson::SUCCESS) {
            refuse(fmt::format("has no {}", full_name));
            return false;
        }
        if (found.get(out) != simdjson::SUCCESS) {
            refuse(fmt::format("has a {} that is not {}", full_name, type));
            return false;
        }
        return true;
    }
};

core_status read_core(status_reader& r, dom::element e, std::string_view at) {
    return {.core = r.count(e, at, "core"),
        .busy = r.number(e, at, "busy"),
        .connections = r.count(e, at, "connections"),
        .inflight = r.count(e, at, "inflight"),
        .requests_total = r.count(e, at, "requests_total"),
        .memory_used_bytes = r.count(e, at, "memory_used_bytes"),
        .memory_total_bytes = r.count(e, at, "memory_total_bytes")};
}

void add_queue(status_reader& r, queue_status& sum, dom::element e, std::string_view at) {
    sum.depth += r.count(e, at, "depth");
    sum.capacity += r.count(e, at, "capacity");
    sum.done_total += r.count(e, at, "done_total");
    sum.refused_total += r.count(e, at, "refused_total");
    sum.dropped_total += r.count(e, at, "dropped_total");
    sum.aborted_total += r.count(e, at, "aborted_total");
}

std::vector<queue_status> read_queues(status_reader& r, dom::element root) {
    std::map<std::pair<std::string, std::string>, queue_status> sums;
    r.each(root, "queues", [&](dom::element e, const std::string& at) {
        const auto queue = r.text(e, at, "queue");
        const auto kind = r.text(e, at, "kind");
        auto& sum = sums[{queue, kind}];
        sum.queue = queue;
        sum.kind = kind;
        add_queue(r, sum, e, at);
    });
    std::vector<queue_status> out;
    for (auto& [key, sum] : sums) {
        out.push_back(std::move(sum));
    }
    return out;
}

status_report read_report(status_reader& r, dom::element root) {
    status_report out;
    out.node = r.text(root, "", "node");
    out.version = r.text(root, "", "version");
    out.phase = r.text(root, "", "phase");
    out.uptime_s = r.number(root, "", "uptime_s");
    out.config_version = r.count(root, "", "config_version");
    r.each(root, "missing", [&](dom::element e, const std::string& at) {
        std::string_view text;
        if (e.get(text) != simdjson::SUCCESS) {
            r.refuse(fmt::format("has a {} that is not text", at));
        }
        out.missing.emplace_back(text);
    });
    r.each(root, "cores",
        [&](dom::element e, const std::string& at) { out.cores.push_back(read_core(r, e, at)); });
    out.queues = read_queues(r, root);
    r.each(root, "phases", [&](dom::element e, const std::string& at) {
        out.phases.push_back({r.text(e, at, "phase"), r.number(e, at, "after_ms")});
    });
    r.each(root, "fibers", [&](dom::element e, const std::string& at) {
        out.fibers.push_back({r.text(e, at, "kind"), r.text(e, at, "name"), r.count(e, at, "core"),
            r.count(e, at, "restarts")});
    });
    return out;
}

} // namespace

std::expected<status_report, std::string> parse_status(std::string_view body) {
    dom::parser parser;
    dom::element root;
    if (parser.parse(body.data(), body.size()).get(root) != simdjson::SUCCESS
        || !root.is_object()) {
        return std::unexpected("is no JSON object");
    }
    status_reader reader;
    auto report = read_report(reader, root);
    if (!reader.problem().empty()) {
        return std::unexpected(reader.problem());
    }
    report.document = simdjson::minify(root);
    return report;
}

} // namespace tidepool::ctl
