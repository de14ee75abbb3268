// The ops listener's routes: health, readiness, version, metrics, status. They never wait behind
// work.
#pragma once

#include "shards/edge/http_server.hh"

namespace tidepool {

void add_ops_routes(http_server&, ss::sharded<runtime>&);

// /healthz alone, for the public listener: load balancers look there.
void add_health_route(http_server&);

std::string_view product_version() noexcept;

} // namespace tidepool
