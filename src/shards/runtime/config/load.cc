#include "shards/runtime/config/load.hh"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <sstream>
#include <yaml-cpp/yaml.h>

extern char** environ;

namespace tidepool {

namespace {

constexpr size_t file_max_bytes = 1024 * 1024;
constexpr size_t depth_max = 8;       // our deepest key has three names
constexpr size_t entries_max = 10'000; // aliases may repeat a node; the walk stays bounded

class loader {
    const config_sources& _sources;
    loaded_config _out;
    std::vector<config_problem> _problems;
    size_t _entries = 0;

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
            problem(_sources.file, "", fmt::format("the file is longer than {} bytes", file_max_bytes));
            return;
        }
        try {
            const YAML::Node root = YAML::Load(std::string(yaml));
            if (!root.IsNull()) {
                walk(root, "", 0);
            }
        } catch (const YAML::Exception& e) {
            problem(where(e.mark), "", fmt::format("no valid YAML: {}", e.msg));
        }
    }

    void walk(const YAML::Node& node, const std::string& path, size_t depth) {
        if (depth > depth_max || ++_entries > entries_max) {
            if (_entries <= entries_max + 1) {
                problem(where(node.Mark()), path, "too many or too deeply nested entries");
            }
            return;
        }
        switch (node.Type()) {
        case YAML::NodeType::Map:
            walk_map(node, path, depth);
            break;
        case YAML::NodeType::Scalar:
            apply(where(node.Mark()), path, node.Scalar());
            break;
        case YAML::NodeType::Null:
            refuse_shape(node, path, "has no value");
            break;
        default:
            refuse_shape(node, path, "is a list");
        }
    }

    void walk_map(const YAML::Node& node, const std::string& path, size_t depth) {
        if (!path.empty() && find_field(path) != nullptr) {
            refuse_shape(node, path, "is a section");
            return;
        }
        std::vector<std::string> seen;
        for (const auto& entry : node) {
            if (!entry.first.IsScalar()) {
                problem(where(entry.first.Mark()), path, "a key that is no plain word");
                continue;
            }
            const auto& name = entry.first.Scalar();
            const auto key = path.empty() ? name : path + "." + name;
            if (std::ranges::find(seen, name) != seen.end()) {
                problem(where(entry.first.Mark()), key, "is given twice");
            }
            seen.push_back(name);
            walk(entry.second, key, depth + 1);
        }
    }

    void refuse_shape(const YAML::Node& node, const std::string& path, std::string_view what) {
        const auto* field = find_field(path);
        if (field) {
            problem(where(node.Mark()), path, fmt::format("{}; {}", what, allowed(*field)));
        } else if (!node.IsNull() || !is_section(path)) {
            unknown(where(node.Mark()), path);
        }
    }

    static bool is_section(std::string_view path) {
        return std::ranges::any_of(config_schema(),
            [&](const auto& f) { return f.path.starts_with(std::string(path) + "."); });
    }

    static std::string allowed(const config_field& field) {
        return fmt::format("allowed: {}{}{}", field.allowed, field.unit.empty() ? "" : " ", field.unit);
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
            key += separator ? '.' : static_cast<char>(std::tolower(static_cast<unsigned char>(name[0])));
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
            problem(origin("http.tls.enabled"), "http.tls.enabled", "TLS needs http.tls.cert_file and http.tls.key_file");
        }
        if (c.auth.required && c.auth.keys_file.empty()) {
            problem(origin("auth.required"), "auth.required", "capabilities need auth.keys_file");
        }
        if (c.reactor.poll && c.reactor.overprovisioned) {
            problem(origin("reactor.poll"), "reactor.poll", "polling takes whole cores: set reactor.overprovisioned: false");
        }
        if (c.http.listen == c.ops.listen && !c.http.listen.ends_with(":0")) {
            problem(origin("ops.listen"), "ops.listen", "must differ from http.listen");
        }
    }

    std::string origin(const std::string& key) const {
        const auto found = _out.origins.find(key);
        return found == _out.origins.end() ? "defaults" : found->second;
    }
};

// A YAML scalar in single quotes, in which only the quote itself needs doubling; no value holds a line break.
std::string quoted(std::string_view value) {
    std::string out = "'";
    for (const char c : value) {
        out += c;
        if (c == '\'') {
            out += c;
        }
    }
    return out + "'";
}

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
    std::stringstream text;
    if (in) {
        text << in.rdbuf();
    }
    if (!in) {
        return std::unexpected(std::vector<config_problem>{{sources.file, "", "cannot be read"}});
    }
    return load_config_text(text.view(), sources);
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
        std::stringstream path(field.is_map() ? field.path.substr(0, field.path.size() - 2) : field.path);
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
        const auto value = field.type == "text" ? quoted(field.get(c)) : field.get(c);
        out += fmt::format("{:{}}{}: {}\n", "", 2 * common, names.back(), value);
    }
    return out;
}

} // namespace tidepool
