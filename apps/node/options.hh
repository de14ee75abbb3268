// The command line of `tidepool`.
#pragma once

#include "shards/runtime/config/load.hh"

#include <expected>
#include <string>
#include <vector>

namespace tidepool {

struct node_options {
    enum class action : uint8_t { run, check, help, version, queues };
    action what = action::run;
    config_sources sources;
    std::vector<std::string> seastar; // after "--": handed to Seastar as they are
};

// The error is one line for the user.
std::expected<node_options, std::string> parse_node_options(int argc, char** argv);

std::string node_usage();

} // namespace tidepool
