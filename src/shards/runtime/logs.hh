// Log output: format and levels. Loggers themselves are one a folder, in its logger.hh.
#pragma once

#include "shards/runtime/config/config.hh"

namespace tidepool {

// Lines for people (Seastar's own) or one JSON object a line. Once, before the reactor starts.
void set_log_format(const log_config&);

// Levels are process-wide atomics of the loggers: setting them on one core sets them for all.
void apply_log_levels(const log_config&);

} // namespace tidepool
