// Configuration files: a tree that shows and loads again, or problems; never an exception, never
// without end.
#include "fuzz_check.hh"
#include "shards/runtime/config/load.hh"

using namespace tidepool;
using tidepool::fuzz::check;

namespace {

constexpr size_t problems_max = 10'100;

void check_shows_back(const config& values) {
    const auto again =
        load_config_text(show_config(values), {.file = "shown", .environment = {}, .sets = {}});
    check(again.has_value(), "what is shown loads");
    for (const auto& field : config_schema()) {
        check(field.get(again->values) == field.get(values), "what is shown loads the same");
    }
    const auto diff = diff_config(values, again->values);
    check(diff.live.empty() && diff.needs_restart.empty(), "no difference to itself");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view in(reinterpret_cast<const char*>(data), size);
    const auto loaded = load_config_text(in, {.file = "fuzz", .environment = {}, .sets = {}});
    if (!loaded) {
        check(!loaded.error().empty(), "a refusal says why");
        check(loaded.error().size() <= problems_max, "problems are bounded");
        for (const auto& problem : loaded.error()) {
            check(problem.text().starts_with("fuzz") || problem.where == "defaults",
                "a problem says where");
        }
        return 0;
    }
    for (const auto& [key, origin] : loaded->origins) {
        check(find_field(key) != nullptr && origin.starts_with("fuzz"),
            "an origin is a key and a place");
    }
    check_shows_back(loaded->values);
    return 0;
}
