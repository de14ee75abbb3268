#include "shards/runtime/config/load.hh"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

extern char** environ;

namespace tidepool {

namespace {

constexpr size_t file_max_bytes = 1024 * 1024;
constexpr size_t depth_max = 8; // our deepest key has three names
constexpr size_t entries_max = 10'000;

// Where a reader hands what it found, and its complaints.
class yaml_sink {
public:
    virtual ~yaml_sink() = default;
    virtual void value(const YAML::Mark&, const std::string& path, const std::string& text) = 0;
    virtual void misshapen(const YAML::Mark&, const std::string& path, std::string_view what) = 0;
    virtual void refused(const YAML::Mark&, const std::string& path, std::string_view what) = 0;
};

// Reads the parser's events instead of yaml-cpp's tree, which keeps the first of two equal keys,
// drops later documents and lets aliases multiply: here each of these is found, and nothing is
// built in memory.
class yaml_reader final : public YAML::EventHandler {
    struct level {
        std::string path;
        std::optional<std::string> key; // whose value comes next
        YAML::Mark key_mark{};
        std::set<std::string> seen{};
    };
    yaml_sink& _sink;
    std::vector<level> _levels;
    size_t _skipping = 0; // depth inside something that was refused
    size_t _entries = 0;
    bool _bad_key = false; // the value of a refused key is refused with it

public:
    struct too_many {};

    explicit yaml_reader(yaml_sink& sink) : _sink(sink) {}

    void OnDocumentStart(const YAML::Mark&) override {}
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
        if (auto path = begin_value(mark)) {
            const auto& at = _levels.empty() ? mark : _levels.back().key_mark;
            _sink.misshapen(at, *path, "has no value");
            end_value();
        }
    }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
        if (auto path = begin_value(mark)) {
            _sink.refused(mark, *path, "aliases are not understood here");
            end_value();
        }
    }
    void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
        const std::string& text) override {
        if (_skipping == 0 && awaits_key()) {
            take_key(mark, text);
        } else if (auto path = begin_value(mark)) {
            _sink.value(mark, *path, text);
            end_value();
        }
    }
    void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
        YAML::EmitterStyle::value) override {
        if (auto path = begin_value(mark)) {
            _sink.misshapen(mark, *path, "is a list");
            end_value();
        }
        ++_skipping;
    }
    void OnSequenceEnd() override { --_skipping; }
    void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t,
        YAML::EmitterStyle::value) override {
        auto path = begin_value(mark);
        if (path && !path->empty() && find_field(*path)) {
            _sink.misshapen(mark, *path, "is a section");
            end_value();
            path.reset();
        } else if (path && _levels.size() >= depth_max) {
            _sink.refused(mark, *path, "is nested too deeply");
            end_value();
            path.reset();
        }
        if (path) {
            _levels.push_back({.path = *path, .key = std::nullopt});
        } else {
            ++_skipping;
        }
    }
    void OnMapEnd() override {
        if (_skipping > 0) {
            --_skipping;
            return;
        }
        _levels.pop_back();
        end_value();
    }

private:
    bool awaits_key() const { return !_levels.empty() && !_levels.back().key && !_bad_key; }

    // The path of the value that begins; nothing if it is inside or behind something refused.
    std::optional<std::string> begin_value(const YAML::Mark& mark) {
        if (++_entries > entries_max) {
            throw too_many{};
        }
        if (_skipping > 0) {
            return std::nullopt;
        }
        if (_levels.empty()) {
            return "";
        }
        if (std::exchange(_bad_key, false)) {
            return std::nullopt;
        }
        auto& top = _levels.back();
        if (!top.key) {
            _sink.refused(mark, top.path, "a key that is no plain word");
            _bad_key = true;
            return std::nullopt;
        }
        return top.path.empty() ? *top.key : top.path + "." + *top.key;
    }

    void end_value() {
        if (!_levels.empty()) {
            _levels.back().key.reset();
        }
    }

    void take_key(const YAML::Mark& mark, const std::string& name) {
        auto& top = _levels.back();
        const auto path = top.path.empty() ? name : top.path + "." + name;
        // A dot would be a second spelling of a nested key; only a map's own names may hold one.
        const bool dotted = name.find('.') != name.npos && !find_field(top.path + ".x");
        if (name.empty() || dotted) {
            _sink.refused(mark, path, "a key that is no plain word");
            _bad_key = true;
        } else if (!top.seen.insert(name).second) {
            _sink.refused(mark, path, "is given twice");
            _bad_key = true;
        } else {
            top.key = name;
            top.key_mark = mark;
        }
    }
};

class loader final : yaml_sink {
    const config_sources& _sources;
    loaded_config _out;
    std::vector<config_problem> _problems;

public:
    explicit loader(const config_sources& sources) : _sources(sources) {}

    load_result run(std::string_view yaml) {
        read_yaml(yaml);
        for (const auto& [name, value] : _sources.environment) {
            apply(fmt::format("environment {}", name), key_of_variable(name), value);
        }
        for (const auto& set : _sources.sets) {
            apply_set(set);
        }
        check_together();
        if (!_problems.empty()) {
            return std::unexpected(std::move(_problems));
        }
        return std::move(_out);
    }

private:
    std::string where(const YAML::Mark& mark) const {
        return mark.is_null() ? _sources.file : fmt::format("{}:{}", _sources.file, mark.line + 1);
    }

    void problem(std::string at, std::string key, std::string message) {
        _problems.push_back({std::move(at), std::move(key), std::move(message)});
    }

    void read_yaml(std::string_view yaml) {
        if (yaml.size() > file_max_bytes) {
            problem(
                _sources.file, "", fmt::format("the file is longer than {} bytes", file_max_bytes));
            return;
        }
        try {
            std::istringstream stream{std::string(yaml)};
            YAML::Parser parser(stream);
            yaml_reader reader(*this);
            if (parser.HandleNextDocument(reader) && parser) {
                problem(_sources.file, "", "holds more than one YAML document");
            }
        } catch (const YAML::Exception& e) {
            problem(where(e.mark), "", fmt::format("no valid YAML: {}", e.msg));
        } catch (const yaml_reader::too_many&) {
            problem(_sources.file, "", fmt::format("holds more than {} entries", entries_max));
        }
    }

    void value(const YAML::Mark& mark, const std::string& path, const std::string& text) override {
        apply(where(mark), path, text);
    }
    void refused(const YAML::Mark& mark, const std::string& path, std::string_view what) override {
        problem(where(mark), path, std::string(what));
    }
    void misshapen(
        const YAML::Mark& mark, const std::string& path, std::string_view what) override {
        const auto* field = find_field(path);
        if (field) {
            problem(where(mark), path, fmt::format("{}; {}", what, allowed(*field)));
        } else if (what != "has no value") {
            unknown(where(mark), path);
        } else if (!path.empty() && !is_section(path)) {
            unknown(where(mark), path); // an empty section is fine, and so is an empty file
        }
    }

    static bool is_section(std::string_view path) {
        return std::ranges::any_of(config_schema(),
            [&](const auto& f) { return f.path.starts_with(std::string(path) + "."); });
    }

    static std::string allowed(const config_field& field) {
        return fmt::format(
            "allowed: {}{}{}", field.allowed, field.unit.empty() ? "" : " ", field.unit);
    }

    void unknown(std::string at, std::string_view key) {
        const auto near = closest_key(key);
        const auto hint = near ? fmt::format("; did you mean {}?", *near) : std::string();
        const auto what = is_section(key) ? "is a section, not a value" : "no such key";
        problem(std::move(at), std::string(key), what + hint);
    }

    void apply(std::string at, std::string_view key, std::string_view value) {
        const auto* field = find_field(key);
        if (!field) {
            unknown(std::move(at), key);
            return;
        }
        const auto last = key.substr(field->path.size() - (field->is_map() ? 1 : 0));
        if (auto set = field->set(_out.values, last, value); !set) {
            problem(std::move(at), std::string(key),
                fmt::format("\"{}\" {}; {}", value.substr(0, 64), set.error(), allowed(*field)));
            return;
        }
        _out.origins[std::string(key)] = std::move(at);
    }

    static std::string key_of_variable(std::string_view name) {
        std::string key;
        name.remove_prefix(std::string_view("TIDEPOOL_").size());
        while (!name.empty()) {
            const bool separator = name.starts_with("__");
            key += separator ? '.'
                             : static_cast<char>(std::tolower(static_cast<unsigned char>(name[0])));
            name.remove_prefix(separator ? 2 : 1);
        }
        return key;
    }

    void apply_set(std::string_view set) {
        const auto equals = set.find('=');
        if (equals == std::string_view::npos) {
            problem("--set", std::string(set), "needs the form key=value");
            return;
        }
        apply("--set", set.substr(0, equals), set.substr(equals + 1));
    }

    // Rules over more than one field.
    void check_together() {
        const auto& c = _out.values;
        if (c.http.tls.enabled && (c.http.tls.cert_file.empty() || c.http.tls.key_file.empty())) {
            problem(origin("http.tls.enabled"), "http.tls.enabled",
                "TLS needs http.tls.cert_file and http.tls.key_file");
        }
        if (c.auth.required && c.auth.keys_file.empty()) {
            problem(origin("auth.required"), "auth.required", "capabilities need auth.keys_file");
        }
        if (c.reactor.poll && c.reactor.overprovisioned) {
            problem(origin("reactor.poll"), "reactor.poll",
                "polling takes whole cores: set reactor.overprovisioned: false");
        }
        if (c.http.listen == c.ops.listen) {
            problem(origin("ops.listen"), "ops.listen", "must differ from http.listen");
        }
    }

    std::string origin(const std::string& key) const {
        const auto found = _out.origins.find(key);
        return found == _out.origins.end() ? "defaults" : found->second;
    }
};

} // namespace

std::string config_problem::text() const {
    std::string out = where;
    if (!key.empty()) {
        out += fmt::format(": {}", key);
    }
    return fmt::format("{}: {}", out, message);
}

load_result load_config_text(std::string_view yaml, const config_sources& sources) {
    return loader(sources).run(yaml);
}

load_result load_config(const config_sources& sources) {
    if (sources.file.empty()) {
        return load_config_text("", sources);
    }
    std::ifstream in(sources.file);
    // A folder opens like a file and only fails to be read; a device may never end.
    std::string text(file_max_bytes + 1, '\0');
    if (!in || std::filesystem::is_directory(sources.file)) {
        return std::unexpected(std::vector<config_problem>{{sources.file, "", "cannot be read"}});
    }
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(in.gcount()));
    return load_config_text(text, sources);
}

std::vector<std::pair<std::string, std::string>> config_environment() {
    std::vector<std::pair<std::string, std::string>> out;
    for (char** entry = environ; *entry; ++entry) {
        const std::string_view text = *entry;
        const auto equals = text.find('=');
        const auto name = text.substr(0, equals);
        if (name.starts_with("TIDEPOOL_") && name.find("__") != name.npos && equals != text.npos) {
            out.emplace_back(name, text.substr(equals + 1));
        }
    }
    std::ranges::sort(out);
    return out;
}

config_diff diff_config(const config& running, const config& next) {
    config_diff diff{.merged = next, .live = {}, .needs_restart = {}};
    for (const auto& field : config_schema()) {
        const auto from = field.get(running);
        const auto to = field.get(next);
        if (from == to) {
            continue;
        }
        if (field.lifetime == life::live) {
            diff.live.push_back({field.path, from, to});
            continue;
        }
        diff.needs_restart.push_back({field.path, from, to});
        // No restart field is a map, so its own text restores it exactly.
        [[maybe_unused]] auto restored = field.set(diff.merged, "", from);
    }
    return diff;
}

std::string show_config(const config& c) {
    std::string out;
    std::vector<std::string> open;
    for (const auto& field : config_schema()) {
        std::vector<std::string> names;
        std::stringstream path(
            field.is_map() ? field.path.substr(0, field.path.size() - 2) : field.path);
        for (std::string name; std::getline(path, name, '.');) {
            names.push_back(name);
        }
        size_t common = 0;
        while (common + 1 < names.size() && common < open.size() && open[common] == names[common]) {
            ++common;
        }
        open.resize(common);
        for (; common + 1 < names.size(); ++common) {
            out += fmt::format("{:{}}{}:\n", "", 2 * common, names[common]);
            open.push_back(names[common]);
        }
        const auto value = field.type == "text" ? yaml_quoted(field.get(c)) : field.get(c);
        out += fmt::format("{:{}}{}: {}\n", "", 2 * common, names.back(), value);
    }
    return out;
}

} // namespace tidepool
