#include "args.hh"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

namespace tidepool::ctl {

namespace {

class parser {
    const command& _command;
    word_list _words;
    std::vector<option> _options;
    arguments _out;

public:
    parser(const command& c, word_list words)
        : _command(c), _words(words), _options(c.all_options()) {}

    outcome<arguments> run() {
        bool options_ended = false;
        while (!_words.empty()) {
            const auto word = _words.front();
            _words = _words.subspan(1);
            if (!options_ended && word == "--") {
                options_ended = true;
            } else if (options_ended || !word.starts_with('-') || word == "-") {
                _out.add_operand(word); // "-" alone is standard input
            } else if (auto taken = take_option(word); !taken) {
                return std::unexpected(taken.error());
            }
        }
        return check_operands();
    }

private:
    outcome<void> take_option(std::string_view word) {
        const auto equals = word.find('=');
        const auto given_name = word == "-h" ? help_option.name : word.substr(0, equals);
        const auto known = std::ranges::find(_options, given_name, &option::name);
        if (known == _options.end()) {
            return usage("has no option {}", given_name);
        }
        if (known->kind != takes::values && _out.has(known->name)) {
            return usage("takes {} once", known->name);
        }
        if (equals != word.npos) {
            if (known->kind == takes::nothing) {
                return usage("takes no value after {}", known->name);
            }
            _out.add_option(known->name, word.substr(equals + 1));
            return {};
        }
        return take_without_equals(*known);
    }

    outcome<void> take_without_equals(const option& known) {
        if (known.kind == takes::nothing || known.kind == takes::optional_value) {
            _out.add_option(known.name, std::nullopt);
            return {};
        }
        if (_words.empty()) {
            return usage("needs {} after {}", known.value_name, known.name);
        }
        _out.add_option(known.name, _words.front());
        _words = _words.subspan(1);
        return {};
    }

    outcome<arguments> check_operands() {
        const auto count = _out.operands().size();
        const size_t most = _command.operand.empty() ? 0 : 1;
        const size_t least = _command.operand_optional() ? 0 : most;
        if (_out.has(help_option.name)) {
            return std::move(_out);
        }
        if (count < least) {
            return std::unexpected(usage("needs {}", _command.operand).error());
        }
        if (count > most) {
            return std::unexpected(
                usage("does not know what to do with \"{}\"", _out.operands()[most]).error());
        }
        return std::move(_out);
    }

    template <typename... Args>
    outcome<void> usage(fmt::format_string<Args...> text, Args&&... args) const {
        return fail(exit_code::usage, fmt::format("{} {}", _command.full_name(),
                                          fmt::format(text, std::forward<Args>(args)...)));
    }
};

} // namespace

std::string_view name(exit_code code) noexcept {
    constexpr std::array<std::string_view, 5> names{
        "ok", "no", "usage", "unreachable", "bad_input"};
    return names[static_cast<size_t>(code)];
}

std::optional<std::string> arguments::value(std::string_view option_name) const {
    const auto found = _options.find(option_name);
    if (found == _options.end() || found->second.empty()) {
        return std::nullopt;
    }
    return found->second.back();
}

std::vector<std::string> arguments::values(std::string_view option_name) const {
    const auto found = _options.find(option_name);
    return found == _options.end() ? std::vector<std::string>() : found->second;
}

void arguments::add_option(std::string_view option_name, std::optional<std::string_view> given) {
    auto& values = _options[std::string(option_name)];
    if (given) {
        values.emplace_back(*given);
    }
}

std::string command::full_name() const {
    return group.empty() ? std::string(name) : fmt::format("{} {}", group, name);
}

std::vector<option> command::all_options() const {
    auto all = options;
    all.push_back(json_option);
    all.push_back(help_option);
    return all;
}

outcome<arguments> parse_arguments(const command& c, word_list words) {
    return parser(c, words).run();
}

} // namespace tidepool::ctl
