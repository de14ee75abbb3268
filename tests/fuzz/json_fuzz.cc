// JSON bodies: whatever comes in, the answer is typed fields or an error with a field; and what we
// write parses.
#include "fuzz_check.hh"
#include "proto/base/json_out.hh"
#include "proto/http/json_in.hh"

#include <vector>

using namespace tidepool;
using namespace tidepool::http;
using tidepool::fuzz::check;

namespace {

struct fields {
    std::string text;
    std::optional<std::string> note;
    std::optional<uint64_t> count;
    std::optional<bool> on;
};

result<void> read(std::string_view body, fields& out) {
    return parse_json(
        body, {{"text", &out.text}, {"note", &out.note}, {"count", &out.count}, {"on", &out.on}});
}

void read_other_types(std::string_view body) {
    int64_t offset = 0;
    double ratio = 0;
    std::vector<std::string> list;
    const auto read = parse_json(body, {{"offset", &offset}, {"ratio", &ratio}, {"list", &list}});
    check(read || !read.error().message.empty(), "a refusal says why");
}

// What was read, written again, reads the same.
void write_again(const fields& first) {
    json_object out;
    out.add("text", first.text);
    if (first.note) {
        out.add("note", *first.note);
    }
    if (first.count) {
        out.add("count", *first.count);
    }
    if (first.on) {
        out.add("on", *first.on);
    }
    fields second;
    check(read(std::move(out).str(), second).has_value(), "our JSON reads back");
    check(first.text == second.text && first.note == second.note && first.count == second.count
              && first.on == second.on,
        "our JSON reads back the same");
}

// Any bytes become a string that parses.
void write_bytes(std::string_view bytes) {
    json_object out;
    out.add("text", bytes);
    fields back;
    check(read(std::move(out).str(), back).has_value(), "any bytes can be written");
    json_object names;
    names.add(bytes, 1);
    const auto refused = read(std::move(names).str(), back);
    check(!refused && refused.error().message != "no valid JSON", "any bytes can be a name");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view in(reinterpret_cast<const char*>(data), size);
    fields first;
    if (const auto got = read(in, first)) {
        write_again(first);
    } else {
        check(got.error().code == errc::bad_request && !got.error().message.empty(),
            "a refusal says why");
        // A field may be named "", but only by the client.
        check(!got.error().field.empty() || got.error().message == "no such field",
            "a refusal names a field");
        error_body(got.error(), in.substr(0, 16));
    }
    read_other_types(in);
    write_bytes(in);
    return 0;
}
