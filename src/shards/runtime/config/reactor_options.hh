// The reactor section as Seastar's own command-line options, so that one file starts a node.
#pragma once

#include "shards/runtime/config/config.hh"

#include <string>
#include <vector>

namespace tidepool {

std::vector<std::string> reactor_options(const reactor_config&);

} // namespace tidepool
