// `tidepoolctl config`: the node's own loader, run without a node.
#include "commands.hh"

#include "proto/base/json_out.hh"
#include "shards/runtime/config/load.hh"
#include "shards/runtime/config/reactor_options.hh"
#include "shards/runtime/config/schema.hh"

#include <cstdio>
#include <fmt/format.h>
#include <utility>

namespace tidepool::ctl {

namespace {

load_result load_named(const arguments& args) {
    config_sources sources;
    sources.file = args.operands().empty() ? "" : args.operands().front();
    sources.environment = config_environment();
    sources.sets = args.values("--set");
    return load_config(sources);
}

std::string problems_json(const std::vector<config_problem>& problems) {
    json_array out;
    for (const auto& p : problems) {
        const auto one = std::move(
            json_object().add("where", p.where).add("key", p.key).add("message", p.message))
                             .str();
        out.add(raw_json{one});
    }
    return std::move(out).str();
}

std::string values_json(const config& values) {
    json_object out;
    for (const auto& field : config_schema()) {
        std::string_view key = field.path;
        if (field.is_map()) {
            key.remove_suffix(2); // the whole map stands under its own name
        }
        out.add(key, field.get(values));
    }
    return std::move(out).str();
}

answer show_problems(const arguments& args, const std::vector<config_problem>& problems) {
    if (args.json()) {
        print_line(std::move(json_object()
                                 .add("error", "the configuration has problems")
                                 .add("code", name(exit_code::no))
                                 .add("problems", raw_json{problems_json(problems)}))
                .str());
        return exit_code::no;
    }
    for (const auto& p : problems) {
        fmt::print(stderr, "{}\n", printable(p.text()));
    }
    return exit_code::no;
}

std::string reactor_text(const config& values, bool json) {
    const auto options = reactor_options(values.reactor);
    if (!json) {
        return fmt::format("{}", fmt::join(options, " "));
    }
    json_array out;
    for (const auto& o : options) {
        out.add(o);
    }
    return std::move(out).str();
}

void print_without_last_break(std::string text) {
    while (text.ends_with('\n')) {
        text.pop_back();
    }
    print_line(text);
}

} // namespace

answer config_check(const arguments& args) {
    const auto loaded = load_named(args);
    const auto problems = loaded ? std::vector<config_problem>() : loaded.error();
    if (args.json()) {
        print_line(std::move(json_object()
                                 .add("ok", loaded.has_value())
                                 .add("problems", raw_json{problems_json(problems)}))
                .str());
    } else if (loaded) {
        print_line("OK");
    }
    // Here the problems are the answer, not an error: they go to standard output.
    for (const auto& p : problems) {
        if (!args.json()) {
            print_line(printable(p.text()));
        }
    }
    return loaded ? exit_code::ok : exit_code::no;
}

answer config_show(const arguments& args) {
    const auto loaded = load_named(args);
    if (!loaded) {
        return show_problems(args, loaded.error());
    }
    if (args.has("--reactor")) {
        print_line(reactor_text(loaded->values, args.json()));
    } else if (args.json()) {
        print_line(values_json(loaded->values));
    } else {
        print_without_last_break(show_config(loaded->values));
    }
    return exit_code::ok;
}

answer config_print_docs(const arguments& args) {
    if (args.json()) {
        print_line(std::move(json_object().add("markdown", config_docs())).str());
    } else {
        print_without_last_break(config_docs());
    }
    return exit_code::ok;
}

} // namespace tidepool::ctl
