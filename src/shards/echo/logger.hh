#pragma once

#include "shards/base/ss.hh"

#include <seastar/util/log.hh>

namespace tidepool {

extern ss::logger echo_log;

} // namespace tidepool
