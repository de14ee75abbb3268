#include "../seed.hh"
#include "shards/runtime/config/load.hh"
#include "shards/runtime/config/reactor_options.hh"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <unistd.h>

using namespace tidepool;

namespace {

load_result load(std::string_view yaml, std::vector<std::string> sets = {},
    std::vector<std::pair<std::string, std::string>> environment = {}) {
    return load_config_text(yaml,
        {.file = "node.yaml", .environment = std::move(environment), .sets = std::move(sets)});
}

std::string problems_of(const load_result& loaded) {
    std::string out;
    if (!loaded) {
        for (const auto& problem : loaded.error()) {
            out += problem.text() + "\n";
        }
    }
    return out;
}

config loaded_values(std::string_view yaml, std::vector<std::string> sets = {}) {
    const auto loaded = load(yaml, std::move(sets));
    BOOST_TEST_REQUIRE(loaded.has_value(), problems_of(loaded));
    return loaded->values;
}

void check_refused(std::string_view yaml, const std::vector<std::string>& parts) {
    const auto loaded = load(yaml);
    BOOST_TEST_REQUIRE(!loaded.has_value(), yaml);
    const auto text = problems_of(loaded);
    for (const auto& part : parts) {
        BOOST_TEST(text.find(part) != text.npos, "\"" << part << "\" is not in: " << text);
    }
}

void check_equal(const config& a, const config& b) {
    for (const auto& field : config_schema()) {
        BOOST_TEST(field.get(a) == field.get(b), field.path);
    }
}

void check_shows_back(const config& c) {
    const auto text = show_config(c);
    const auto loaded = load(text);
    BOOST_TEST_REQUIRE(loaded.has_value(), problems_of(loaded) << text);
    check_equal(loaded->values, c);
}

std::string variable_of(std::string_view path) {
    std::string out = "TIDEPOOL_";
    for (const char c : path) {
        out += c == '.' ? std::string("__") : std::string(1, static_cast<char>(std::toupper(c)));
    }
    return out;
}

std::string yaml_of(const std::string& path, const std::string& value) {
    std::string out;
    size_t indent = 0, from = 0;
    for (auto dot = path.find('.'); dot != path.npos; dot = path.find('.', from)) {
        out += std::string(indent, ' ') + path.substr(from, dot - from) + ":\n";
        indent += 2;
        from = dot + 1;
    }
    return out + std::string(indent, ' ') + path.substr(from) + ": '" + value + "'\n";
}

// Text that no field of the type can take.
std::string wrong_value(const config_field& field) {
    if (field.type == "text") {
        return std::string(1'025, '0');
    }
    return "surely not";
}

size_t option_at(const std::vector<std::string>& options, std::string_view name) {
    return static_cast<size_t>(std::ranges::find(options, name) - options.begin());
}

std::string option_value(const reactor_config& c, std::string_view name) {
    const auto options = reactor_options(c);
    const auto at = option_at(options, name);
    return at + 1 < options.size() ? options[at + 1] : at < options.size() ? "last" : "absent";
}

bool has_option(const reactor_config& c, std::string_view name) {
    const auto options = reactor_options(c);
    return option_at(options, name) < options.size();
}

} // namespace

BOOST_AUTO_TEST_SUITE(configuration)

BOOST_AUTO_TEST_CASE(nothing_given_is_the_defaults) {
    for (const auto* yaml : {"", "\n", "# only a comment\n", "---\n", "http:\n", "{}"}) {
        check_equal(loaded_values(yaml), config{});
    }
    BOOST_TEST(load("")->origins.empty());
}

BOOST_AUTO_TEST_CASE(every_default_passes_its_own_check) {
    for (const auto& field : config_schema()) {
        BOOST_TEST_CONTEXT(field.path) {
            config c;
            BOOST_TEST(!field.sentence.empty());
            BOOST_TEST(!field.allowed.empty());
            BOOST_TEST(find_field(field.path) == &field);
            const auto text = field.is_map() ? std::string("info") : field.get(c);
            const auto set = field.set(c, "key", text);
            BOOST_TEST(set.has_value(), set.error());
            BOOST_TEST((field.is_map() || field.get(c) == text));
        }
    }
}

BOOST_AUTO_TEST_CASE(paths_are_unique) {
    for (const auto& field : config_schema()) {
        BOOST_TEST(
            std::ranges::count(config_schema(), field.path, &config_field::path) == 1, field.path);
    }
}

BOOST_AUTO_TEST_CASE(flags_win_over_environment_over_file_over_defaults) {
    const std::string yaml = "http:\n  backlog: 10\n";
    const std::vector<std::pair<std::string, std::string>> environment{
        {"TIDEPOOL_HTTP__BACKLOG", "20"}};
    const std::vector<std::string> flags{"http.backlog=30"};
    BOOST_TEST(load("")->values.http.backlog == 4'096u);
    BOOST_TEST(load(yaml)->values.http.backlog == 10u);
    BOOST_TEST(load(yaml, {}, environment)->values.http.backlog == 20u);
    BOOST_TEST(load(yaml, flags)->values.http.backlog == 30u);
    const auto all = load(yaml, flags, environment);
    BOOST_TEST(all->values.http.backlog == 30u);
    BOOST_TEST(all->origins.at("http.backlog") == "--set");
    BOOST_TEST(load(yaml, {}, environment)->origins.at("http.backlog")
               == "environment TIDEPOOL_HTTP__BACKLOG");
    BOOST_TEST(load(yaml)->origins.at("http.backlog") == "node.yaml:2");
    BOOST_TEST(load("", {"http.backlog=1", "http.backlog=2"})->values.http.backlog == 2u);
}

BOOST_AUTO_TEST_CASE(every_key_can_be_set_each_way) {
    for (const auto& field : config_schema()) {
        BOOST_TEST_CONTEXT(field.path) {
            const auto key =
                field.is_map() ? field.path.substr(0, field.path.size() - 1) + "edge" : field.path;
            const auto value = field.is_map() ? std::string("warn") : field.get(config{});
            const auto by_file = load(yaml_of(key, value));
            const auto by_flag = load("", {key + "=" + value});
            const auto by_variable = load("", {}, {{variable_of(key), value}});
            BOOST_TEST(by_file.has_value(), problems_of(by_file));
            BOOST_TEST(by_flag.has_value(), problems_of(by_flag));
            BOOST_TEST(by_variable.has_value(), problems_of(by_variable));
            BOOST_TEST((by_file && by_file->origins.contains(key)));
            BOOST_TEST((by_variable && by_variable->origins.contains(key)));
        }
    }
}

BOOST_AUTO_TEST_CASE(wrong_values_name_place_key_and_allowed) {
    for (const auto& field : config_schema()) {
        BOOST_TEST_CONTEXT(field.path) {
            const auto key =
                field.is_map() ? field.path.substr(0, field.path.size() - 1) + "edge" : field.path;
            const auto yaml = yaml_of(key, wrong_value(field));
            const auto line = std::ranges::count(yaml, '\n');
            check_refused(
                yaml, {fmt::format("node.yaml:{}: {}: ", line, key), "allowed: " + field.allowed});
            const auto flag = load("", {key + "=" + wrong_value(field)});
            BOOST_TEST(problems_of(flag).starts_with("--set: " + key + ": "));
            const auto variable = load("", {}, {{variable_of(key), wrong_value(field)}});
            BOOST_TEST(problems_of(variable).starts_with(
                fmt::format("environment {}: {}: ", variable_of(key), key)));
        }
    }
}

BOOST_AUTO_TEST_CASE(numbers_out_of_range) {
    for (const auto& field : config_schema()) {
        if (field.type != "whole number") {
            continue;
        }
        const auto dots = field.allowed.find("..");
        const auto least = std::stoull(field.allowed.substr(0, dots));
        const auto most = std::stoull(field.allowed.substr(dots + 2));
        config c;
        BOOST_TEST(field.set(c, "", fmt::to_string(least)).has_value(), field.path);
        BOOST_TEST(field.set(c, "", fmt::to_string(most)).has_value(), field.path);
        BOOST_TEST(field.get(c) == fmt::to_string(most));
        BOOST_TEST(
            field.set(c, "", fmt::to_string(most + 1)).error() == "is out of range", field.path);
        if (least > 0) {
            BOOST_TEST(field.set(c, "", fmt::to_string(least - 1)).error() == "is out of range",
                field.path);
        }
        for (const auto* text : {"", "-1", "+1", "1.5", "0x10", " 1", "1 ", "1k", "1e3", "one"}) {
            BOOST_TEST(field.set(c, "", text).error() == "is not a whole number",
                field.path << " " << text);
        }
        BOOST_TEST(field.set(c, "", "99999999999999999999999").error() == "is out of range");
        BOOST_TEST(field.get(c) == fmt::to_string(most), "a refused value changes nothing");
    }
}

BOOST_AUTO_TEST_CASE(flags_are_true_or_false_only) {
    for (const auto* value : {"yes", "no", "1", "0", "True", "on", "''"}) {
        check_refused(fmt::format("reactor:\n  poll: {}\n", value),
            {"node.yaml:2: reactor.poll", "true, false"});
    }
}

BOOST_AUTO_TEST_CASE(addresses) {
    for (const auto* good : {"0.0.0.0:1", "127.0.0.1:1", "[::1]:8080", "[::]:65535"}) {
        BOOST_TEST(load("", {fmt::format("http.listen={}", good)}).has_value(), good);
    }
    for (const auto* bad :
        {"", "localhost:80", "127.0.0.1", ":80", "1.2.3:80", "127.0.0.1:", "::1:80", "1.2.3.4:80 ",
            "127.0.0.1:0", "127.0.0.1:99999", "127.0.0.1:65536", "256.0.0.1:80"}) {
        BOOST_TEST(!load("", {fmt::format("http.listen={}", bad)}).has_value(), bad);
    }
}

BOOST_AUTO_TEST_CASE(unknown_keys_suggest_the_nearest) {
    check_refused("http:\n  read_timout_ms: 5\n",
        {"node.yaml:2: http.read_timout_ms: no such key; did you mean http.read_timeout_ms?"});
    check_refused(
        "htpp:\n  listen: x\n", {"node.yaml:2: htpp.listen", "did you mean http.listen?"});
    const auto far = problems_of(load("zzzzzz: 1\n"));
    BOOST_TEST(far == "node.yaml:1: zzzzzz: no such key\n");
    BOOST_TEST(problems_of(load("", {"http.backlg=1"})).find("http.backlog") != std::string::npos);
    BOOST_TEST(problems_of(load("", {}, {{"TIDEPOOL_HTTP__BACKLG", "1"}})).find("http.backlog")
               != std::string::npos);
    BOOST_TEST(problems_of(load("", {"http=1"})).find("is a section") != std::string::npos);
    BOOST_TEST(problems_of(load("", {"nonsense"})).find("key=value") != std::string::npos);
    BOOST_TEST(!closest_key(std::string(1'000'000, 'a')).has_value());
}

BOOST_AUTO_TEST_CASE(keys_given_twice) {
    check_refused(
        "http:\n  backlog: 1\n  backlog: 1\n", {"node.yaml:3: http.backlog: is given twice"});
    check_refused("http:\n  backlog: 1\nhttp:\n  listen: '1.1.1.1:1'\n",
        {"node.yaml:3: http: is given twice"});
    check_refused("log:\n  levels: {a: info, a: info}\n", {"log.levels.a: is given twice"});
    // Two spellings of one key.
    check_refused("http:\n  backlog: 1\nhttp.backlog: 2\n", {"http.backlog"});
}

BOOST_AUTO_TEST_CASE(a_nameless_section_is_no_second_root) {
    check_refused("http: {backlog: 1}\n'': {http: {backlog: 2}}\n", {"node.yaml:2"});
}

BOOST_AUTO_TEST_CASE(shapes_where_a_value_belongs) {
    check_refused("http:\n  backlog: [1, 2]\n",
        {"node.yaml:2: http.backlog: is a list", "allowed: 1..65535"});
    check_refused("http:\n  backlog: {a: 1}\n",
        {"node.yaml:2: http.backlog: is a section", "allowed: 1..65535"});
    check_refused(
        "http:\n  backlog:\n", {"node.yaml:2: http.backlog: has no value", "allowed: 1..65535"});
    check_refused("http:\n  backlog: ~\n", {"http.backlog: has no value"});
    check_refused("http:\n  listen: null\n", {"http.listen: has no value"});
    check_refused("http: 5\n", {"node.yaml:1: http: is a section"});
    check_refused("http: [1]\n", {"node.yaml:1: http:"});
    check_refused("log:\n  levels: info\n", {"log.levels"});
    check_refused("log:\n  levels:\n    a: {b: info}\n", {"log.levels.a"});
    for (const auto* yaml : {"[1, 2]", "text", "? [a]\n: 1\n", "? {a: b}\n: 1\n"}) {
        check_refused(yaml, {"node.yaml:1"});
    }
}

BOOST_AUTO_TEST_CASE(no_valid_yaml_names_the_line) {
    check_refused("http:\n  backlog: 1\n bad: [\n", {"node.yaml:", "no valid YAML"});
    check_refused("a: *nowhere\n", {"node.yaml:1", "no valid YAML"});
    check_refused("http: {backlog: 1", {"no valid YAML"});
    check_refused("\tx: 1\n", {"node.yaml:1"});
    check_refused("# " + std::string(1024 * 1024, 'x'), {"longer than"});
    check_refused(std::string(100'000, '['), {"node.yaml"});
    check_refused(std::string(100'000, '{'), {"node.yaml"});
}

// What stands after the first document would be dropped in silence.
BOOST_AUTO_TEST_CASE(a_second_document_is_refused) {
    check_refused("http:\n  backlog: 1\n---\nhttp:\n  backlog: 2\n", {"node.yaml"});
}

BOOST_AUTO_TEST_CASE(all_problems_are_reported_together) {
    const auto loaded = load("http:\n  backlog: x\n  listen: y\nnope: 1\n", {"node.name=a b"},
        {{"TIDEPOOL_OPS__LISTEN", "z"}});
    BOOST_TEST_REQUIRE(!loaded.has_value());
    BOOST_TEST(loaded.error().size() == 5u, problems_of(loaded));
}

BOOST_AUTO_TEST_CASE(rules_over_two_fields) {
    check_refused("http: {tls: {enabled: true}}", {"node.yaml:1: http.tls.enabled", "cert_file"});
    check_refused("auth: {required: true}", {"auth.required", "auth.keys_file"});
    check_refused("reactor: {poll: true}", {"reactor.poll", "overprovisioned"});
    check_refused("ops: {listen: '127.0.0.1:8080'}", {"ops.listen: must differ from http.listen"});
    BOOST_TEST(load("auth: {required: true, keys_file: k}").has_value());
    BOOST_TEST(load("http: {tls: {enabled: true, cert_file: c, key_file: k}}").has_value());
    BOOST_TEST(load("reactor: {poll: true, overprovisioned: false}").has_value());
}

BOOST_AUTO_TEST_CASE(aliases_that_multiply_are_bounded) {
    std::string laughs = "a0: &a0 {x: 1, y: 1}\n";
    for (int i = 1; i < 12; ++i) {
        laughs += fmt::format("a{}: &a{} {{", i, i);
        for (int j = 0; j < 10; ++j) {
            laughs += fmt::format("k{}: *a{}, ", j, i - 1);
        }
        laughs += "}\n";
    }
    const auto loaded = load(laughs);
    BOOST_TEST_REQUIRE(!loaded.has_value());
    BOOST_TEST(loaded.error().size() <= 10'002u);
}

// One wide map, placed many times exactly where its entries are too deep.
BOOST_AUTO_TEST_CASE(aliases_below_the_depth_limit_are_bounded) {
    std::string wide = "wide: &wide {";
    std::string many = "a: {b: {c: {d: {e: {f: {g: {";
    for (int i = 0; i < 300; ++i) {
        wide += fmt::format("w{}: 1, ", i);
        many += fmt::format("k{}: *wide, ", i);
    }
    const auto loaded = load(wide + "}\n" + many + "}}}}}}}\n");
    BOOST_TEST_REQUIRE(!loaded.has_value());
    BOOST_TEST(loaded.error().size() <= 10'002u, loaded.error().size());
}

BOOST_AUTO_TEST_CASE(a_wide_file_is_bounded_in_time) {
    std::string yaml = "{";
    while (yaml.size() < 400'000) {
        yaml += fmt::format("k{:x}: 1,", yaml.size());
    }
    const auto before = std::chrono::steady_clock::now();
    const auto loaded = load(yaml + "}");
    const auto took = std::chrono::steady_clock::now() - before;
    BOOST_TEST_REQUIRE(!loaded.has_value());
    BOOST_TEST(loaded.error().size() <= 10'002u);
    BOOST_TEST(std::chrono::duration<double>(took).count() < 10.0);
}

BOOST_AUTO_TEST_CASE(aliases_are_refused_by_name) {
    check_refused("http: {tls: {cert_file: &f same, key_file: *f}}",
        {"node.yaml:1: http.tls.key_file: aliases are not understood"});
}

BOOST_AUTO_TEST_CASE(logger_levels) {
    const auto c =
        loaded_values("log: {levels: {edge: debug, http: warn}}", {"log.levels.edge=trace"});
    BOOST_TEST(c.log.levels.at("edge") == "trace");
    BOOST_TEST(c.log.levels.at("http") == "warn");
    BOOST_TEST(c.log.levels.size() == 2u);
    BOOST_TEST(find_field("log.levels.edge") == find_field("log.levels.*"));
    BOOST_TEST(!find_field("log.levels."));
    BOOST_TEST(!find_field("log.levels"));
}

BOOST_AUTO_TEST_CASE(shown_text_loads_again) {
    check_shows_back({});
    config c;
    c.http.backlog = 17;
    c.http.tls = {.enabled = true, .cert_file = "it's ''here''", .key_file = "k"};
    c.reactor.memory = "512M";
    c.reactor.overprovisioned = false;
    c.log.levels = {{"edge", "debug"}, {"http.server", "warn"}};
    check_shows_back(c);
}

BOOST_AUTO_TEST_CASE(odd_strings_show_and_load_again) {
    for (const std::string odd : {"'", "''", "a: b", "# no comment", " leading", "trailing ", "  ",
             "null", "~", "true", "123", "0x10", "- a", "[a", "{a", "*a", "&a", "!a", "|", ">", "%",
             "@", "`", "\"", "\\", "\\n", "a\\", "---", "...", "? a", ": ", "caf\xC3\xA9",
             "\xE2\x80\xA8", "\xC2\x85", "\xF0\x9F\x90\xA0", "\x7f", "a#b", "a #b"}) {
        BOOST_TEST_CONTEXT("text <" << odd << ">") {
            auto loaded = load("", {"auth.keys_file=" + odd});
            BOOST_TEST_REQUIRE(loaded.has_value(), problems_of(loaded));
            check_shows_back(loaded->values);
        }
    }
}

BOOST_AUTO_TEST_CASE(random_text_shows_and_loads_again) {
    auto random = test::random_for("configuration/random_text");
    const std::string_view alphabet = "ab '\"\\:#-?!&*{}[],|>%@`~=.\xC3";
    for (int round = 0; round < 500; ++round) {
        std::string text;
        for (uint64_t i = test::draw(random, 0, 12); i > 0; --i) {
            const char c = alphabet[test::draw(random, 0, alphabet.size() - 1)];
            text += c == '\xC3' ? std::string("\xC3\xA9") : std::string(1, c);
        }
        config c;
        BOOST_TEST_REQUIRE(find_field("auth.keys_file")->set(c, "", text).has_value(), text);
        check_shows_back(c);
    }
}

// Either a logger's name is refused, or it is shown so that it loads again.
BOOST_AUTO_TEST_CASE(odd_logger_names_show_and_load_again) {
    for (const std::string odd :
        {"a,b", "a: b", "*", "'", "#", "}", "a b", "null", "[", "\"", "a.b", "-", "x y: z"}) {
        BOOST_TEST_CONTEXT("logger <" << odd << ">") {
            if (const auto loaded = load("", {fmt::format("log.levels.{}=info", odd)})) {
                check_shows_back(loaded->values);
            }
        }
    }
}

// Either such bytes are refused, or they are shown so that they load again.
BOOST_AUTO_TEST_CASE(text_that_is_no_utf8) {
    for (const std::string odd : {"\xff", "a\xC3", "\xED\xA0\x80", "\xC0\x80"}) {
        if (const auto loaded = load("", {"auth.keys_file=" + odd})) {
            check_shows_back(loaded->values);
        }
    }
}

BOOST_AUTO_TEST_CASE(control_characters_are_refused_in_text) {
    for (const auto* key :
        {"auth.keys_file", "node.data_dir", "http.tls.cert_file", "reactor.hugepages"}) {
        for (const char c : {'\n', '\r', '\t', '\x01', '\x1b', '\0'}) {
            const auto set = std::string(key) + "=a" + std::string(1, c) + "b";
            BOOST_TEST(!load("", {set}).has_value(), key << " byte " << int(c));
        }
    }
}

BOOST_AUTO_TEST_CASE(a_reload_splits_live_from_restart) {
    const config running =
        loaded_values("http: {backlog: 10, read_timeout_ms: 100}\nlog: {levels: {a: info}}");
    const config next =
        loaded_values("http: {backlog: 20, read_timeout_ms: 200}\nlog: {levels: {b: warn}}\n"
                      "node: {name: other}");
    const auto diff = diff_config(running, next);
    BOOST_TEST_REQUIRE(diff.live.size() == 2u);
    BOOST_TEST(diff.live[0].key == "http.read_timeout_ms");
    BOOST_TEST(diff.live[0].from == "100");
    BOOST_TEST(diff.live[0].to == "200");
    BOOST_TEST(diff.live[1].key == "log.levels.*");
    BOOST_TEST_REQUIRE(diff.needs_restart.size() == 2u);
    BOOST_TEST(diff.needs_restart[0].key == "node.name");
    BOOST_TEST(diff.needs_restart[1].key == "http.backlog");
    BOOST_TEST(diff.needs_restart[1].from == "10");
    BOOST_TEST(diff.needs_restart[1].to == "20");
    BOOST_TEST(diff.merged.http.backlog == 10u);
    BOOST_TEST(diff.merged.http.read_timeout_ms == 200u);
    BOOST_TEST(diff.merged.node.name == "tidepool");
    BOOST_TEST(diff.merged.log.levels.contains("b"));
    BOOST_TEST(!diff.merged.log.levels.contains("a"));
}

BOOST_AUTO_TEST_CASE(every_key_is_live_or_restart_in_a_diff) {
    for (const auto& field : config_schema()) {
        BOOST_TEST_CONTEXT(field.path) {
            const config running;
            config next;
            for (const auto* text : {"2", "1048577", "true", "false", "debug", "json", "dpdk",
                     "epoll", "1M", "9.9.9.9:9", "2048", "other"}) {
                if (field.get(next) == field.get(running)) {
                    static_cast<void>(field.set(next, "k", text));
                }
            }
            BOOST_TEST_REQUIRE(field.get(next) != field.get(running));
            const auto diff = diff_config(running, next);
            const bool live = field.lifetime == life::live;
            BOOST_TEST(diff.live.size() == (live ? 1u : 0u));
            BOOST_TEST(diff.needs_restart.size() == (live ? 0u : 1u));
            check_equal(diff.merged, live ? next : running);
        }
    }
}

BOOST_AUTO_TEST_CASE(nothing_changed_is_no_diff) {
    const auto diff = diff_config({}, {});
    BOOST_TEST(diff.live.empty());
    BOOST_TEST(diff.needs_restart.empty());
}

BOOST_AUTO_TEST_CASE(reactor_options_of_the_defaults) {
    const auto options = reactor_options({});
    const std::vector<std::string> expected{"--blocked-reactor-notify-ms", "200", "--lock-memory",
        "0", "--no-handle-interrupt", "--overprovisioned"};
    BOOST_TEST((options == expected));
}

BOOST_AUTO_TEST_CASE(reactor_options_of_every_key) {
    const reactor_config c{.cores = 4,
        .memory = "2G",
        .backend = "io_uring",
        .cpuset = "0-3",
        .hugepages = "/huge",
        .poll = true,
        .overprovisioned = false,
        .lock_memory = true,
        .io_properties_file = "/io.yaml",
        .network = "dpdk",
        .blocked_notify_ms = 50};
    BOOST_TEST(option_value(c, "--smp") == "4");
    BOOST_TEST(option_value(c, "--memory") == "2G");
    BOOST_TEST(option_value(c, "--reactor-backend") == "io_uring");
    BOOST_TEST(option_value(c, "--cpuset") == "0-3");
    BOOST_TEST(option_value(c, "--hugepages") == "/huge");
    BOOST_TEST(option_value(c, "--io-properties-file") == "/io.yaml");
    BOOST_TEST(option_value(c, "--blocked-reactor-notify-ms") == "50");
    BOOST_TEST(option_value(c, "--lock-memory") == "1");
    BOOST_TEST(option_value(c, "--network-stack") == "native");
    BOOST_TEST(has_option(c, "--dpdk-pmd"));
    BOOST_TEST(has_option(c, "--poll-mode"));
    BOOST_TEST(has_option(c, "--no-handle-interrupt"));
    BOOST_TEST(!has_option(c, "--overprovisioned"));
}

BOOST_AUTO_TEST_CASE(document_is_printed_from_the_schema) {
    std::ifstream file(TIDEPOOL_SOURCE_DIR "/docs/CONFIG.md");
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    BOOST_TEST((text == config_docs()), "docs/CONFIG.md is old: run make docs");
}

BOOST_AUTO_TEST_CASE(docs_name_every_key) {
    const auto docs = config_docs();
    for (const auto& field : config_schema()) {
        BOOST_TEST(docs.find(fmt::format("| `{}` |", field.path)) != docs.npos, field.path);
    }
    for (size_t at = docs.find("\n| `"); at != docs.npos; at = docs.find("\n| `", at + 1)) {
        const auto row = docs.substr(at + 1, docs.find('\n', at + 1) - at - 1);
        size_t bars = 0;
        for (size_t i = 0; i < row.size(); ++i) {
            bars += row[i] == '|' && (i == 0 || row[i - 1] != '\\') ? 1 : 0;
        }
        BOOST_TEST(bars == 7u, row);
    }
}

BOOST_AUTO_TEST_CASE(files) {
    const auto folder =
        std::filesystem::temp_directory_path() / fmt::format("tidepool_config_{}", getpid());
    std::filesystem::create_directory(folder);
    const auto path = (folder / "node.yaml").string();
    std::ofstream(path) << "http:\n  backlog: 7\n";
    BOOST_TEST(
        load_config({.file = path, .environment = {}, .sets = {}})->values.http.backlog == 7u);
    std::ofstream(path) << "";
    BOOST_TEST(load_config({.file = path, .environment = {}, .sets = {}}).has_value());
    std::filesystem::remove(path);
    const auto absent = load_config({.file = path, .environment = {}, .sets = {}});
    BOOST_TEST(problems_of(absent) == path + ": cannot be read\n");
    BOOST_TEST(load_config({}).has_value());
    // A folder is no configuration; it must not pass as an empty one.
    BOOST_TEST(!load_config({.file = folder.string(), .environment = {}, .sets = {}}).has_value());
    std::filesystem::remove(folder);
}

BOOST_AUTO_TEST_CASE(environment_of_the_process) {
    setenv("TIDEPOOL_HTTP__BACKLOG", "5", 1);
    setenv("TIDEPOOL_UNRELATED", "x", 1);
    const auto environment = config_environment();
    unsetenv("TIDEPOOL_HTTP__BACKLOG");
    unsetenv("TIDEPOOL_UNRELATED");
    const std::pair<std::string, std::string> wanted{"TIDEPOOL_HTTP__BACKLOG", "5"};
    BOOST_TEST(std::ranges::count(environment, wanted) == 1);
    for (const auto& [name, value] : environment) {
        BOOST_TEST(name != "TIDEPOOL_UNRELATED");
    }
}

BOOST_AUTO_TEST_SUITE_END()
