// Chunked bodies: data stays inside the input and the limit, and any cut gives the same body.
// The first byte of an input chooses where it is cut and the limit.
#include "fuzz_check.hh"
#include "proto/http/chunked.hh"

using namespace tidepool;
using namespace tidepool::http;
using tidepool::fuzz::check;
using tidepool::fuzz::inside;

namespace {

struct decoded {
    parse_state state = parse_state::need_more;
    size_t consumed = 0;
    std::string body;
    error problem;
};

void feed(chunked_decoder& decoder, std::string_view in, decoded& out) {
    while (!in.empty() && out.state == parse_state::need_more) {
        const auto step = decoder.next(in);
        check(step.consumed <= in.size(), "consumed inside");
        check(inside(step.data, in.substr(0, step.consumed)), "data inside what is consumed");
        check(step.consumed > 0 || step.state != parse_state::need_more, "every call gets on");
        out.state = step.state;
        out.consumed += step.consumed;
        out.body += step.data;
        out.problem = step.problem;
        in.remove_prefix(step.consumed);
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size < 1) {
        return 0;
    }
    const std::string_view in(reinterpret_cast<const char*>(data) + 1, size - 1);
    const uint64_t limit = (data[0] & 1) ? 1'000'000 : 16;
    const size_t cut = in.empty() ? 0 : (data[0] * 7919U) % in.size();
    chunked_decoder at_once(limit), in_two(limit);
    decoded whole, split;
    feed(at_once, in, whole);
    feed(in_two, in.substr(0, cut), split);
    feed(in_two, in.substr(cut), split);
    check(whole.body.size() <= limit, "the limit holds");
    check(whole.state == split.state && whole.consumed == split.consumed, "same end in pieces");
    check(whole.body == split.body, "same body in pieces");
    check(
        whole.problem.code == split.problem.code && whole.problem.message == split.problem.message,
        "same problem in pieces");
    check(whole.state != parse_state::need_more || whole.consumed == in.size(), "all is taken");
    check(at_once.announced() == in_two.announced(), "same announcement in pieces");
    return 0;
}
