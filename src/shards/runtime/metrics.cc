#include "shards/runtime/metrics.hh"

#include <algorithm>
#include <seastar/core/metrics_api.hh>
#include <seastar/core/smp.hh>
#include <seastar/coroutine/maybe_yield.hh>
#include <set>

namespace tidepool {

namespace sm = ss::metrics;
namespace smi = ss::metrics::impl;

counter_family::counter_family(std::string group, std::string name, std::string label,
    std::string description, std::initializer_list<std::string_view> known)
    : _group(std::move(group)), _name(std::move(name)), _label(std::move(label)),
      _description(std::move(description)) {
    for (const auto value : known) {
        at(value);
    }
}

uint64_t& counter_family::at(std::string_view value) {
    if (const auto found = _counts.find(value); found != _counts.end()) {
        return found->second;
    }
    if (_counts.size() >= values_max) {
        value = "other";
    }
    const auto [row, fresh] = _counts.emplace(value, 0);
    if (fresh) {
        _metrics.add_group(
            _group, {sm::make_counter(_name, [&n = row->second] { return n; },
                        sm::description(_description), {sm::label(_label)(std::string(value))})});
    }
    return row->second;
}

uint64_t counter_family::total() const noexcept {
    uint64_t sum = 0;
    for (const auto& [value, n] : _counts) {
        sum += n;
    }
    return sum;
}

void latency_histogram::record(std::chrono::steady_clock::duration elapsed) noexcept {
    const double s = std::chrono::duration<double>(elapsed).count();
    for (size_t i = 0; i < bounds_s.size(); ++i) {
        if (s <= bounds_s[i]) {
            ++_buckets[i];
            break;
        }
    }
    ++_count;
    _sum_s += s;
}

sm::histogram latency_histogram::value() const {
    sm::histogram h;
    h.sample_count = _count;
    h.sample_sum = _sum_s;
    uint64_t cumulative = 0;
    for (size_t i = 0; i < bounds_s.size(); ++i) {
        cumulative += _buckets[i];
        sm::histogram_bucket bucket;
        bucket.count = cumulative;
        bucket.upper_bound = bounds_s[i];
        h.buckets.push_back(bucket);
    }
    return h;
}

namespace {

// Seastar registers these groups itself; every other group is ours.
bool is_seastars(std::string_view group) {
    static const std::set<std::string_view> groups{"alien", "io_queue", "memory", "network",
        "reactor", "scheduler", "stall_detector", "httpd", "rpc", "smp", "data_sink", "tls",
        "logger", "file", "lsa"};
    return groups.contains(group) || group.starts_with("smp");
}

void append_escaped(std::string& out, std::string_view value) {
    for (const char c : value) {
        if (c == '\n') {
            out += "\\n";
            continue;
        }
        if (c == '"' || c == '\\') {
            out += '\\';
        }
        out += c;
    }
}

void append_sample(std::string& out, std::string_view family, std::string_view suffix,
    const smi::labels_type& labels, std::string_view le, double value) {
    out += family;
    out += suffix;
    char separator = '{';
    auto append_label = [&](std::string_view key, std::string_view text) {
        out += separator;
        out += key;
        out += "=\"";
        append_escaped(out, text);
        out += '"';
        separator = ',';
    };
    for (const auto& [key, text] : labels) {
        append_label(key, text);
    }
    if (!le.empty()) {
        append_label("le", le);
    }
    out += separator == ',' ? "} " : " ";
    fmt::format_to(std::back_inserter(out), "{}\n", value);
}

void append_histogram(std::string& out, std::string_view family, const smi::labels_type& labels,
    const sm::histogram& h) {
    for (const auto& bucket : h.buckets) {
        append_sample(out, family, "_bucket", labels, fmt::format("{}", bucket.upper_bound),
            static_cast<double>(bucket.count));
    }
    append_sample(out, family, "_bucket", labels, "+Inf", static_cast<double>(h.sample_count));
    append_sample(out, family, "_sum", labels, "", h.sample_sum);
    append_sample(out, family, "_count", labels, "", static_cast<double>(h.sample_count));
}

std::string_view type_name(sm::impl::data_type t) {
    switch (t) {
    case smi::data_type::COUNTER:
    case smi::data_type::REAL_COUNTER:
        return "counter";
    case smi::data_type::HISTOGRAM:
        return "histogram";
    case smi::data_type::SUMMARY:
        return "summary";
    case smi::data_type::GAUGE:
        return "gauge";
    }
    return "untyped";
}

struct family_text {
    std::string help;
    std::string_view type;
    std::string samples;
};

// Adds one core's values to the families, by name.
ss::future<> collect(const smi::values_copy& core, std::map<std::string, family_text>& families) {
    auto values = core.values.begin();
    for (const auto& family : *core.metadata) {
        const auto& row = *values++;
        if (family.metrics.empty()) {
            continue;
        }
        const std::string name =
            (is_seastars(family.metrics.front().group_name()) ? "seastar_" : "")
            + std::string(family.mf.name);
        auto& text = families[name];
        text.help = family.mf.d.str();
        text.type = type_name(family.mf.type);
        auto value = row.begin();
        for (const auto& series : family.metrics) {
            const auto& v = *value++;
            if (v.type() == smi::data_type::HISTOGRAM || v.type() == smi::data_type::SUMMARY) {
                append_histogram(text.samples, name, series.labels(), v.get_histogram());
            } else {
                append_sample(text.samples, name, "", series.labels(), "", v.d());
            }
        }
        co_await ss::coroutine::maybe_yield();
    }
}

} // namespace

ss::future<std::string> metrics_text() {
    std::map<std::string, family_text> families;
    for (unsigned core = 0; core < ss::smp::count; ++core) {
        auto values = co_await ss::smp::submit_to(core, [] { return smi::get_values(); });
        co_await collect(*values, families);
    }
    std::string out;
    for (const auto& [name, family] : families) {
        fmt::format_to(std::back_inserter(out), "# HELP {} {}\n# TYPE {} {}\n", name, family.help,
            name, family.type);
        out += family.samples;
        co_await ss::coroutine::maybe_yield();
    }
    co_return out;
}

} // namespace tidepool
