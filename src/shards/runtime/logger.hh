#pragma once

#include "shards/base/ss.hh"

#include <seastar/util/log.hh>

namespace tidepool {

extern ss::logger runtime_log;

} // namespace tidepool
