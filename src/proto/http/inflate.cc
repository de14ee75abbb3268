#include "proto/http/inflate.hh"

#include <algorithm>
#include <new>
#include <zlib.h>

namespace tidepool::http {

namespace {

constexpr size_t step_bytes = 64 * 1024;

// "deflate" means the zlib format, but some clients send the bare stream: the zlib header tells
// them apart.
bool has_zlib_header(std::string_view in) {
    const auto byte = [&](size_t i) { return static_cast<unsigned>(static_cast<uint8_t>(in[i])); };
    return in.size() >= 2 && (byte(0) & 0x0f) == 8 && (byte(0) * 256 + byte(1)) % 31 == 0;
}

int window_bits(coding c, std::string_view in) {
    if (c == coding::gzip) {
        return 15 + 16;
    }
    return has_zlib_header(in) ? 15 : -15;
}

} // namespace

struct inflater::stream {
    z_stream z{};
};

inflater::inflater(coding c, std::string_view packed, inflate_limits limits)
    : _stream(std::make_unique<stream>()),
      _limit(std::min(limits.max_bytes, packed.size() * limits.max_ratio)) {
    // zlib never writes through next_in; its signature is older than const.
    _stream->z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    _stream->z.avail_in = static_cast<uInt>(packed.size());
    if (inflateInit2(&_stream->z, window_bits(c, packed)) != Z_OK) {
        throw std::bad_alloc();
    }
}

inflater::~inflater() {
    inflateEnd(&_stream->z);
}

std::unexpected<error> inflater::bad(std::string_view why) const {
    return fail(errc::bad_request, std::string(why), "body");
}

result<bool> inflater::step() {
    auto& z = _stream->z;
    const size_t before = _out.size();
    // One byte above the limit is enough to see that it is passed.
    const size_t room = std::min<uint64_t>(step_bytes, _limit + 1 - before);
    _out.resize(before + room);
    z.next_out = reinterpret_cast<Bytef*>(_out.data() + before);
    z.avail_out = static_cast<uInt>(room);
    const int code = inflate(&z, Z_NO_FLUSH);
    _out.resize(before + room - z.avail_out);
    if (_out.size() > _limit) {
        return fail(errc::frame_too_large, "the unpacked body is too long", "body");
    }
    if (code == Z_STREAM_END) {
        if (z.avail_in > 0) {
            return bad("bytes after the end of the packed body");
        }
        return true;
    }
    if (code != Z_OK || (z.avail_in == 0 && z.avail_out > 0)) {
        return bad(code == Z_OK || code == Z_BUF_ERROR ? "the packed body is cut off"
                                                       : "the packed body is damaged");
    }
    return false;
}

} // namespace tidepool::http
