// What a command accepts, and what a command line gave it. Help and completions read the same
// descriptions, so that they cannot say anything else than the parser does.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tidepool::ctl {

enum class exit_code : int {
    ok = 0,
    no = 1,          // the question was understood and the answer is no
    usage = 2,       // the command line is wrong
    unreachable = 3, // no usable answer from the node
    bad_input = 4,   // a key file or a token is not acceptable
};

std::string_view name(exit_code) noexcept;

struct failure {
    exit_code code;
    std::string message;
};

template <typename T>
using outcome = std::expected<T, failure>;

inline std::unexpected<failure> fail(exit_code code, std::string message) {
    return std::unexpected(failure{code, std::move(message)});
}

enum class takes : uint8_t {
    nothing,        // --json
    value,          // --ops HOST:PORT or --ops=HOST:PORT
    optional_value, // --watch or --watch=SECONDS
    values,         // as value, and may be given more than once
};

struct option {
    std::string_view name;
    takes kind;
    std::string_view value_name;
    std::string_view sentence;
};

// Every command has these two.
inline constexpr option json_option{"--json", takes::nothing, "", "answer as one JSON document"};
inline constexpr option help_option{"--help", takes::nothing, "", "this text"};

class arguments {
    std::map<std::string, std::vector<std::string>, std::less<>> _options;
    std::vector<std::string> _operands;

public:
    bool has(std::string_view option_name) const { return _options.contains(option_name); }
    // The last value; none if the option is absent or came without one.
    std::optional<std::string> value(std::string_view option_name) const;
    std::vector<std::string> values(std::string_view option_name) const;
    bool json() const { return has(json_option.name); }

    const std::vector<std::string>& operands() const { return _operands; }

    void add_option(std::string_view option_name, std::optional<std::string_view> given);
    void add_operand(std::string_view word) { _operands.emplace_back(word); }
};

using answer = outcome<exit_code>;

struct command {
    std::string_view group; // "config" in `config check`; empty for a command of one word
    std::string_view name;
    std::string_view operand; // "FILE", "[FILE]", "bash|zsh"; empty: none
    std::string_view sentence;
    std::string_view details; // the rest of its help
    std::vector<option> options;
    answer (*run)(const arguments&);

    bool operand_optional() const noexcept { return operand.starts_with('['); }
    std::string full_name() const;
    std::vector<option> all_options() const; // its own, --json and --help
};

using word_list = std::span<const std::string_view>;

outcome<arguments> parse_arguments(const command&, word_list);

} // namespace tidepool::ctl
