#include "proto/http/chunked.hh"

#include <algorithm>

namespace tidepool::http {

namespace {

bool refuse(error& problem, std::string_view why, errc code = errc::bad_request) {
    problem = error{code, std::string(why), "chunked body"};
    return false;
}

int hex_value(char c) noexcept {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

} // namespace

chunked_decoder::step chunked_decoder::next(std::string_view in) {
    step out;
    while (out.consumed < in.size() && _at != at::done) {
        if (_at == at::data) {
            out.data =
                in.substr(out.consumed, std::min<uint64_t>(_chunk_left, in.size() - out.consumed));
            out.consumed += out.data.size();
            _chunk_left -= out.data.size();
            if (_chunk_left == 0) {
                _at = at::data_cr;
            }
            return out;
        }
        if (!accept(in[out.consumed++], out.problem)) {
            out.state = parse_state::failed;
            return out;
        }
    }
    if (_at == at::done) {
        out.state = parse_state::done;
    }
    return out;
}

bool chunked_decoder::accept(char c, error& problem) {
    switch (_at) {
    case at::size:
        return size_char(c, problem);
    case at::extension:
        if (c == '\r') {
            _at = at::size_cr;
            return true;
        }
        return spend_overhead(c, problem);
    case at::size_cr:
        return chunk_begins(c, problem);
    case at::data_cr:
        _at = at::data_lf;
        return c == '\r' || refuse(problem, "a chunk is longer than it said");
    case at::data_lf:
        _at = at::size;
        _digits = 0;
        return c == '\n' || refuse(problem, "a chunk must end in CR LF");
    case at::trailer_start:
        _at = c == '\r' ? at::end_lf : at::trailer;
        return c == '\r' || spend_overhead(c, problem);
    case at::trailer:
        if (c == '\r') {
            _at = at::trailer_cr;
            return true;
        }
        return spend_overhead(c, problem);
    case at::trailer_cr:
        _at = at::trailer_start;
        return c == '\n' || refuse(problem, "a trailer must end in CR LF");
    case at::end_lf:
        _at = at::done;
        return c == '\n' || refuse(problem, "the body must end in CR LF");
    case at::data:
    case at::done:
        break;
    }
    return refuse(problem, "no valid chunk");
}

bool chunked_decoder::size_char(char c, error& problem) {
    const int digit = hex_value(c);
    if (digit >= 0) {
        if (++_digits > size_digits_max) {
            return refuse(problem, "a chunk size has too many digits");
        }
        _chunk_left = _chunk_left * 16 + static_cast<uint64_t>(digit);
        return true;
    }
    if (_digits == 0) {
        return refuse(problem, "a chunk size is no hexadecimal number");
    }
    if (c == '\r') {
        _at = at::size_cr;
        return true;
    }
    if (c == ';') {
        _at = at::extension;
        return true;
    }
    return refuse(problem, "a chunk size is no hexadecimal number");
}

bool chunked_decoder::chunk_begins(char c, error& problem) {
    if (c != '\n') {
        return refuse(problem, "a chunk size must end in CR LF");
    }
    if (_chunk_left > _left_of_limit) {
        return refuse(problem, "the body is too long", errc::frame_too_large);
    }
    _left_of_limit -= _chunk_left;
    _at = _chunk_left == 0 ? at::trailer_start : at::data;
    return true;
}

bool chunked_decoder::spend_overhead(char c, error& problem) {
    const auto byte = static_cast<uint8_t>(c);
    if ((byte < 0x20 && c != '\t') || byte == 0x7f) {
        return refuse(problem, "a control character in an extension or trailer");
    }
    return ++_overhead <= overhead_max_bytes
           || refuse(problem, "extensions and trailers are too long");
}

} // namespace tidepool::http
