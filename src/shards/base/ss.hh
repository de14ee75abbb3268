// `ss` is Seastar, everywhere in Tidepool.
#pragma once

namespace seastar {}

namespace tidepool {
namespace ss = seastar;
}
