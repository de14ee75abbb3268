// Chunked bodies: bytes -> data, strict and bounded. Pure and resumable at any byte; data is a view
// into the input.
#pragma once

#include "proto/base/errc.hh"
#include "proto/http/head.hh"

#include <cstdint>
#include <string_view>

namespace tidepool::http {

class chunked_decoder {
public:
    struct step {
        parse_state state = parse_state::need_more;
        size_t consumed = 0;     // bytes of the input that are done with
        std::string_view data{}; // a piece of the body, inside the input
        error problem{};
    };

    explicit chunked_decoder(uint64_t body_max_bytes) : _left_of_limit(body_max_bytes) {}

    // Takes what it can from `in`, up to one piece of data. Call again with the rest until it is
    // done, fails or consumes nothing.
    step next(std::string_view in);

    // Bytes of the current chunk that are announced and not yet seen: what memory must be admitted
    // for.
    uint64_t announced() const noexcept { return _chunk_left; }

private:
    enum class at : uint8_t {
        size,
        size_cr,
        extension,
        data,
        data_cr,
        data_lf,
        trailer_start,
        trailer,
        trailer_cr,
        end_lf,
        done
    };

    // Extensions and trailers carry nothing we use; they are bounded and dropped.
    static constexpr unsigned overhead_max_bytes = 8'192;
    static constexpr unsigned size_digits_max = 8;

    at _at = at::size;
    uint64_t _left_of_limit;
    uint64_t _chunk_left = 0;
    unsigned _digits = 0;
    unsigned _overhead = 0;

    bool accept(char c, error& problem);
    bool size_char(char c, error& problem);
    bool chunk_begins(char c, error& problem);
    bool spend_overhead(char c, error& problem);
};

} // namespace tidepool::http
