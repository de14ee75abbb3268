#include "commands.hh"

#include <cstdio>
#include <exception>

int main(int argc, char** argv) {
    try {
        const std::vector<std::string_view> words(argv + (argc > 0 ? 1 : 0), argv + argc);
        return tidepool::ctl::run_command_line(words);
    } catch (const std::exception& e) {
        // Only a fault of the program or the machine (no memory) comes here; errors are values.
        std::fprintf(stderr, "tidepoolctl: %s\n", e.what());
        return static_cast<int>(tidepool::ctl::exit_code::bad_input);
    }
}
