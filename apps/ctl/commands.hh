// The command table: dispatch, help and completions all come from it.
#pragma once

#include "args.hh"

#include <string>
#include <string_view>
#include <vector>

namespace tidepool::ctl {

const std::vector<command>& command_table();

// The words after the program's name; prints the answer and gives the process's exit code.
int run_command_line(word_list words);

// One line on standard output, flushed.
void print_line(std::string_view text);

// For text that another machine or file chose: control bytes become '?', so that it cannot drive
// the operator's terminal.
std::string printable(std::string_view text);

// Of status.cc, config_commands.cc, cap_commands.cc and completions.cc.
answer status(const arguments&);
answer config_check(const arguments&);
answer config_show(const arguments&);
answer config_print_docs(const arguments&);
answer cap_keygen(const arguments&);
answer cap_mint(const arguments&);
answer cap_attenuate(const arguments&);
answer cap_inspect(const arguments&);
answer completions(const arguments&);

} // namespace tidepool::ctl
