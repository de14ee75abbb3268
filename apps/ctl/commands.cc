#include "commands.hh"

#include "proto/base/json_out.hh"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <utility>

namespace tidepool::ctl {

namespace {

constexpr std::string_view exit_codes_help =
    "Exit codes:\n"
    "  0  ok\n"
    "  1  the answer is no: the configuration has problems, the node is not ready\n"
    "  2  the command line is wrong\n"
    "  3  no usable answer from the node\n"
    "  4  bad input: a key file or a token\n";

constexpr option set_option{
    "--set", takes::values, "KEY=VALUE", "set one key, over file and environment"};
constexpr option caveat_option{
    "--caveat", takes::values, "NAME=VALUE", "narrow the capability; may be repeated"};
constexpr option expires_option{
    "--expires-in", takes::value, "TIME", "valid for this long, such as 90s, 30m, 1h or 7d"};

constexpr std::string_view caveats_help =
    "Caveats: expires=UNIX not-before=UNIX audience=NODE method=GET,PUT path=/v1/echo\n"
    "         account=PREFIX body=BYTES rate=N. All of them must hold.\n";

constexpr std::string_view token_help =
    "Give '-' and the token on standard input: a token on the command line can be read by\n"
    "everyone who may list this machine's processes, and stays in the shell's history.\n";

answer print_version(const arguments& args) {
    if (args.json()) {
        print_line(std::move(json_object().add("version", TIDEPOOL_VERSION)).str());
    } else {
        print_line(fmt::format("tidepoolctl {}", TIDEPOOL_VERSION));
    }
    return exit_code::ok;
}

std::vector<command> make_table() {
    static const auto inspect_help =
        std::string(token_help)
        + "Shows what a token says. Whether it is genuine only the owner of its key can tell.\n";
    static const auto attenuate_help = fmt::format("{}{}", token_help, caveats_help);
    return {
        {"", "status", "", "cores, queues and rates of a running node",
            "Without --ops the address comes from TIDEPOOL_OPS_ADDRESS, else it is "
            "127.0.0.1:9600.\n"
            "With --watch the counters of queues are shown per second. Ctrl-C ends it.\n",
            {{"--watch", takes::optional_value, "SECONDS", "again every second, or every SECONDS"},
                {"--ops", takes::value, "HOST:PORT", "the node's ops listener"}},
            status},
        {"config", "check", "FILE", "whether a node would start with this file",
            "Reads file, TIDEPOOL_SECTION__KEY variables and --set, as the node does.\n",
            {set_option}, config_check},
        {"config", "show", "[FILE]", "the effective configuration",
            "Defaults, file, TIDEPOOL_SECTION__KEY variables and --set, merged as the node does.\n",
            {set_option, {"--reactor", takes::nothing, "", "the Seastar options instead"}},
            config_show},
        {"config", "docs", "", "every key, its default, its range and its meaning", "", {},
            config_print_docs},
        {"cap", "keygen", "ID", "a new root key, as a line of the keys file",
            "Keep it private from the first moment:  umask 077; tidepoolctl cap keygen main >> "
            "keys\n",
            {}, cap_keygen},
        {"cap", "mint", "", "a new capability of a root key", caveats_help,
            {{"--keys", takes::value, "FILE", "the keys file, mode 0600"},
                {"--key", takes::value, "ID", "the id of the root key in it"}, caveat_option,
                expires_option},
            cap_mint},
        {"cap", "attenuate", "TOKEN|-", "the same capability with more caveats; needs no key",
            attenuate_help, {caveat_option, expires_option}, cap_attenuate},
        {"cap", "inspect", "TOKEN|-", "the key id and the caveats of a capability", inspect_help,
            {}, cap_inspect},
        {"", "completions", "bash|zsh", "a completion script for your shell",
            "bash:  source <(tidepoolctl completions bash)\n"
            "zsh:   source <(tidepoolctl completions zsh)\n",
            {}, completions},
        {"", "version", "", "the version of this program", "", {}, print_version},
    };
}

std::string option_usage(const option& o) {
    switch (o.kind) {
    case takes::nothing:
        return std::string(o.name);
    case takes::optional_value:
        return fmt::format("{}[={}]", o.name, o.value_name);
    default:
        return fmt::format("{} {}", o.name, o.value_name);
    }
}

std::string command_help(const command& c) {
    auto out = fmt::format("tidepoolctl {}{}{} [options]\n  {}\n\nOptions:\n", c.full_name(),
        c.operand.empty() ? "" : " ", c.operand, c.sentence);
    for (const auto& o : c.all_options()) {
        out += fmt::format("  {:24} {}\n", option_usage(o), o.sentence);
    }
    if (!c.details.empty()) {
        out += fmt::format("\n{}", c.details);
    }
    return fmt::format("{}\n{}", out, exit_codes_help);
}

// All commands, or those of one group.
std::string overview(std::string_view group) {
    std::string out = "Usage: tidepoolctl COMMAND [options]\n\nCommands:\n";
    for (const auto& c : command_table()) {
        if (group.empty() || c.group == group) {
            const auto synopsis = fmt::format("{} {}", c.full_name(), c.operand);
            out += fmt::format("  {:24} {}\n", synopsis, c.sentence);
        }
    }
    return fmt::format("{}\nEvery command takes --json, and --help says more about it.\n\n{}", out,
        exit_codes_help);
}

void print(std::FILE* to, std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), to);
    std::fflush(to);
}

bool wants_help(word_list words) {
    return !words.empty() && (words[0] == "--help" || words[0] == "-h" || words[0] == "help");
}

answer run_found(const command& c, word_list words) {
    const auto args = parse_arguments(c, words);
    if (!args) {
        return std::unexpected(args.error());
    }
    if (args->has(help_option.name)) {
        print(stdout, command_help(c));
        return exit_code::ok;
    }
    return c.run(*args);
}

answer run_in_group(std::string_view group, word_list words) {
    if (wants_help(words)) {
        print(stdout, overview(group));
        return exit_code::ok;
    }
    std::vector<std::string_view> names;
    for (const auto& c : command_table()) {
        if (c.group != group) {
            continue;
        }
        if (!words.empty() && c.name == words[0]) {
            return run_found(c, words.subspan(1));
        }
        names.push_back(c.name);
    }
    return fail(
        exit_code::usage, fmt::format("{} needs one of: {}", group, fmt::join(names, ", ")));
}

answer dispatch(word_list words) {
    if (words.empty()) {
        return fail(exit_code::usage, "needs a command; tidepoolctl --help lists them");
    }
    if (wants_help(words)) {
        print(stdout, overview(""));
        return exit_code::ok;
    }
    const auto first = words[0] == "--version" ? std::string_view("version") : words[0];
    for (const auto& c : command_table()) {
        if (c.group == first) {
            return run_in_group(first, words.subspan(1));
        }
        if (c.group.empty() && c.name == first) {
            return run_found(c, words.subspan(1));
        }
    }
    return fail(exit_code::usage,
        fmt::format("no command \"{}\"; tidepoolctl --help lists them", printable(first)));
}

} // namespace

const std::vector<command>& command_table() {
    static const auto table = make_table();
    return table;
}

void print_line(std::string_view text) {
    print(stdout, fmt::format("{}\n", text));
}

std::string printable(std::string_view text) {
    std::string out(text);
    std::ranges::replace_if(
        out, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
    return out;
}

int run_command_line(word_list words) {
    auto done = dispatch(words);
    if (done && std::ferror(stdout)) {
        done = fail(exit_code::bad_input, "the answer cannot be written to standard output");
    }
    if (done) {
        return static_cast<int>(*done);
    }
    const auto& [code, message] = done.error();
    // Also when the command line itself is at fault, a caller that asked for JSON gets JSON.
    if (std::ranges::find(words, json_option.name) != words.end()) {
        print_line(std::move(json_object().add("error", message).add("code", name(code))).str());
    } else {
        print(stderr, fmt::format("tidepoolctl: {}\n", printable(message)));
    }
    return static_cast<int>(code);
}

} // namespace tidepool::ctl
