// HTTP for the example service.
#pragma once

#include "shards/echo/echo_service.hh"
#include "shards/edge/http_server.hh"

namespace tidepool {

void add_echo_routes(http_server&, ss::sharded<echo_service>&);

} // namespace tidepool
