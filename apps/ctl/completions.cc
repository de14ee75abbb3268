// Completion scripts, made from the command table. Both complete command words, then options, then
// the choices of an operand; file names wherever a value or operand may be one.
#include "commands.hh"

#include "proto/base/json_out.hh"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace tidepool::ctl {

namespace {

struct entry {
    std::string word;
    std::string_view sentence;
};

// The first words: groups and commands without one, each once and in table order.
std::vector<entry> first_words() {
    std::vector<entry> out;
    for (const auto& c : command_table()) {
        const std::string word(c.group.empty() ? c.name : c.group);
        if (std::ranges::find(out, word, &entry::word) == out.end()) {
            out.push_back({word, c.group.empty() ? c.sentence : "a group of commands"});
        }
    }
    return out;
}

std::vector<entry> words_of_group(std::string_view group) {
    std::vector<entry> out;
    for (const auto& c : command_table()) {
        if (c.group == group) {
            out.push_back({std::string(c.name), c.sentence});
        }
    }
    return out;
}

std::vector<entry> words_of_command(const command& c) {
    std::vector<entry> out;
    for (const auto& o : c.all_options()) {
        out.push_back({std::string(o.name), o.sentence});
    }
    // An operand such as "bash|zsh" is a list of choices; of "TOKEN|-" only '-' can be offered.
    const bool choices = c.operand.find('|') != c.operand.npos;
    for (auto rest = choices ? c.operand : std::string_view(); !rest.empty();) {
        const auto choice = rest.substr(0, rest.find('|'));
        rest.remove_prefix(std::min(rest.size(), choice.size() + 1));
        if (choice != "TOKEN") {
            out.push_back({std::string(choice), "choice"});
        }
    }
    return out;
}

// Options after which the next word is their value, as a shell pattern.
std::string options_with_value() {
    std::vector<std::string> names;
    for (const auto& c : command_table()) {
        for (const auto& o : c.options) {
            const bool separate = o.kind == takes::value || o.kind == takes::values;
            if (separate && std::ranges::find(names, o.name) == names.end()) {
                names.emplace_back(o.name);
            }
        }
    }
    return fmt::format("{}", fmt::join(names, "|"));
}

// One branch a place on the command line; `offer` writes the shell's way to offer words.
template <typename Offer>
std::string branches(Offer offer) {
    std::string out;
    for (const auto& first : first_words()) {
        if (const auto inner = words_of_group(first.word); !inner.empty()) {
            out += fmt::format("        2:{}:*) {} ;;\n", first.word, offer(inner));
        }
    }
    for (const auto& c : command_table()) {
        const auto place = c.group.empty() ? fmt::format("*:{}:*", c.name)
                                           : fmt::format("*:{}:{}", c.group, c.name);
        // Where a file name is due, options show up only once a dash is typed.
        const bool file = c.operand.find("FILE") != c.operand.npos;
        out += fmt::format("        {}) {}{} ;;\n", place, file ? "[[ $current == -* ]] && " : "",
            offer(words_of_command(c)));
    }
    return out;
}

std::string bash_offer(const std::vector<entry>& entries) {
    std::vector<std::string> words;
    for (const auto& e : entries) {
        words.push_back(e.word);
    }
    return fmt::format("offer='{}'", fmt::join(words, " "));
}

std::string bash_script() {
    return fmt::format(R"sh(_tidepoolctl() {{
    local offer='' current=${{COMP_WORDS[COMP_CWORD]}}
    COMPREPLY=()
    case ${{COMP_WORDS[COMP_CWORD-1]}} in
        {}) return ;;
    esac
    case $COMP_CWORD:${{COMP_WORDS[1]}}:${{COMP_WORDS[2]}} in
        1:*) {} ;;
{}    esac
    COMPREPLY=($(compgen -W "$offer" -- "$current"))
}}
complete -o default -F _tidepoolctl tidepoolctl)sh",
        options_with_value(), bash_offer(first_words()), branches(bash_offer));
}

std::string zsh_offer(const std::vector<entry>& entries) {
    std::string out = "offer=(";
    for (const auto& e : entries) {
        std::string text = fmt::format("{}:{}", e.word, e.sentence);
        for (size_t at = 0; (at = text.find('\'', at)) != text.npos; at += 4) {
            text.replace(at, 1, "'\\''");
        }
        out += fmt::format("'{}' ", text);
    }
    out.back() = ')';
    return out;
}

// Zsh runs the file as the function itself when it finds it in fpath; sourced, it must register.
std::string zsh_script() {
    return fmt::format(R"sh(#compdef tidepoolctl
_tidepoolctl() {{
    local -a offer
    local current=${{words[CURRENT]}}
    case ${{words[CURRENT-1]}} in
        {}) _files; return ;;
    esac
    case $((CURRENT-1)):${{words[2]}}:${{words[3]}} in
        1:*) {} ;;
{}    esac
    if (( ${{#offer}} )); then _describe tidepoolctl offer; else _files; fi
}}
if [[ ${{funcstack[1]-}} == _tidepoolctl ]]; then
    _tidepoolctl "$@"
else
    compdef _tidepoolctl tidepoolctl
fi)sh",
        options_with_value(), zsh_offer(first_words()), branches(zsh_offer));
}

} // namespace

answer completions(const arguments& args) {
    const auto& shell = args.operands().front();
    if (shell != "bash" && shell != "zsh") {
        return fail(exit_code::usage, "completions are for bash or zsh");
    }
    const auto script = shell == "bash" ? bash_script() : zsh_script();
    print_line(args.json() ? std::move(json_object().add("script", script)).str() : script);
    return exit_code::ok;
}

} // namespace tidepool::ctl
