// Unpacks gzip and deflate bodies with a bound on the result, in steps so that the reactor can
// breathe between them.
#pragma once

#include "proto/base/errc.hh"
#include "proto/http/head.hh"

#include <memory>
#include <string>
#include <string_view>

namespace tidepool::http {

struct inflate_limits {
    uint64_t max_bytes;
    uint64_t max_ratio;
};

// The packed bytes must outlive the object. A body that would grow past a limit costs at most one
// step of memory beyond it.
class inflater {
public:
    inflater(coding, std::string_view packed, inflate_limits);
    ~inflater();
    inflater(const inflater&) = delete;
    inflater& operator=(const inflater&) = delete;

    // Unpacks up to 64 KiB more. True when the body is complete, false when there is more to do.
    result<bool> step();
    std::string take() && { return std::move(_out); }

private:
    struct stream;
    std::unique_ptr<stream> _stream;
    std::string _out;
    uint64_t _limit;

    std::unexpected<error> bad(std::string_view why) const;
};

} // namespace tidepool::http
