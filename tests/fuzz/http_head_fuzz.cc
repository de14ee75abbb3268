// Request heads: views stay inside the input, limits hold, a head in two pieces reads as the whole.
// The first byte of an input chooses where it is cut and how long a head may be.
#include "fuzz_check.hh"
#include "proto/http/head.hh"

#include <memory>

using namespace tidepool;
using namespace tidepool::http;
using tidepool::fuzz::check;
using tidepool::fuzz::inside;

namespace {

struct parsed {
    head_outcome outcome;
    request_head head;
};

void check_done(const parsed& p, std::string_view in, size_t max_bytes) {
    const auto& h = p.head;
    check(
        p.outcome.consumed <= in.size() && p.outcome.consumed <= max_bytes, "consumed is bounded");
    const auto used = in.substr(0, p.outcome.consumed);
    check(used.ends_with("\r\n\r\n"), "a head ends in an empty line");
    check(h.header_count <= request_head::headers_max, "headers are bounded");
    check(inside(h.path, used) || h.path == "/", "path inside");
    check(inside(h.query, used) && inside(h.host, used) && inside(h.authorization, used),
        "views inside");
    check(!h.path.empty() && (h.path[0] == '/' || h.path == "*"), "a path begins with a slash");
    check(h.path.find_first_of("?# \r\n") == h.path.npos, "a path is only a path");
    for (const auto& line : h.headers()) {
        check(!line.name.empty() && inside(line.name, used) && inside(line.value, used),
            "header inside");
        check(line.value.find_first_of(std::string_view("\r\n\0", 3)) == line.value.npos,
            "value is one line");
    }
    check(!(h.chunked && h.content_length), "one length");
    check(!(h.chunked && h.http_1_0), "chunked only in HTTP/1.1");
    check(h.http_1_0 || !h.find("host").empty() || h.host.empty(), "host is a header");
}

bool same_head(const request_head& a, const request_head& b) {
    bool same = a.verb == b.verb && a.path == b.path && a.query == b.query
                && a.http_1_0 == b.http_1_0 && a.keep_alive == b.keep_alive
                && a.chunked == b.chunked && a.expect_continue == b.expect_continue
                && a.content_coding == b.content_coding && a.content_length == b.content_length
                && a.host == b.host && a.authorization == b.authorization
                && a.header_count == b.header_count;
    for (size_t i = 0; same && i < a.header_count; ++i) {
        same = a.header_slots[i].name == b.header_slots[i].name
               && a.header_slots[i].value == b.header_slots[i].value;
    }
    return same;
}

void check_split(const parsed& whole, std::string_view in, size_t cut, size_t max_bytes) {
    const auto split = std::make_unique<parsed>();
    size_t scanned = 0;
    split->outcome = parse_head(in.substr(0, cut), max_bytes, scanned, split->head);
    if (split->outcome.state == parse_state::need_more) {
        check(scanned <= cut, "scanned is bounded");
        split->outcome = parse_head(in, max_bytes, scanned, split->head);
    }
    // A refusal may wait for the end of a head that comes in pieces; whatever is answered is the
    // same.
    const bool too_long = in.size() > max_bytes;
    if (whole.outcome.state == parse_state::failed
        && (too_long || in.find("\r\n\r\n") == in.npos)) {
        check(split->outcome.state != parse_state::done, "a bad head stays bad in pieces");
        return;
    }
    check(split->outcome.state == whole.outcome.state, "same state in pieces");
    check(split->outcome.problem.code == whole.outcome.problem.code, "same problem in pieces");
    check(split->outcome.problem.field == whole.outcome.problem.field, "same field in pieces");
    if (whole.outcome.state == parse_state::done) {
        check(split->outcome.consumed == whole.outcome.consumed, "same length in pieces");
        check(same_head(split->head, whole.head), "same head in pieces");
    }
}

void check_texts(std::string_view text) {
    const auto decoded = percent_decode(text);
    check(!decoded || decoded->size() <= text.size(), "decoding does not grow");
    const auto value = query_value(text, "a");
    check(!value || value->size() <= text.size(), "a query value does not grow");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size < 1) {
        return 0;
    }
    const std::string_view in(reinterpret_cast<const char*>(data) + 1, size - 1);
    const size_t max_bytes = (data[0] & 1) ? 16 * 1024 : 256;
    const auto whole = std::make_unique<parsed>();
    size_t scanned = 0;
    whole->outcome = parse_head(in, max_bytes, scanned, whole->head);
    check(scanned <= in.size(), "scanned is bounded");
    if (whole->outcome.state == parse_state::done) {
        check_done(*whole, in, max_bytes);
    } else if (whole->outcome.state == parse_state::failed) {
        check(!whole->outcome.problem.message.empty(), "a refusal says why");
    } else {
        check(in.size() < max_bytes, "a head does not grow without end");
    }
    if (!in.empty()) {
        check_split(*whole, in, (data[0] * 7919U) % in.size(), max_bytes);
    }
    check_texts(in);
    return 0;
}
