#include "shards/runtime/config/load.hh"

#include <fmt/format.h>
#include <string>

namespace tidepool {

namespace {

std::string section_of(const std::string& path) {
    return path.substr(0, path.find('.'));
}

std::string cell(std::string_view text) {
    std::string out;
    for (const char c : text) {
        out += c == '|' ? std::string("\\|") : std::string(1, c);
    }
    return out;
}

} // namespace

std::string config_docs() {
    std::string out = "# Configuration\n\n"
                      "Printed by `tidepoolctl config docs` from the schema in "
                      "`src/shards/runtime/config/schema.cc`; a test keeps the\n"
                      "two equal, so change the schema, then run `make docs`.\n\n"
                      "A key is set in the YAML file (`--config FILE`), by an environment variable "
                      "(`http.read_timeout_ms` is\n"
                      "`TIDEPOOL_HTTP__READ_TIMEOUT_MS`) or by a flag (`--set "
                      "http.read_timeout_ms=2000`). Flags win over the\n"
                      "environment, the environment over the file, the file over the defaults. An "
                      "unknown key, a wrong type or a\n"
                      "value out of range stops the start; every problem is named with its file, "
                      "line, key and what is allowed.\n\n"
                      "*Live* keys change on SIGHUP, on every core at once; *restart* keys are "
                      "reported then and keep their value.\n"
                      "A file with a problem changes nothing.\n";
    const config defaults;
    std::string section;
    for (const auto& field : config_schema()) {
        if (section_of(field.path) != section) {
            section = section_of(field.path);
            out += fmt::format(
                "\n## `{}`\n\n| key | default | allowed | unit | changes | what it does |\n"
                "|---|---|---|---|---|---|\n",
                section);
        }
        const auto value = field.get(defaults);
        out += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", field.path,
            value.empty() ? "empty" : fmt::format("`{}`", value), cell(field.allowed), field.unit,
            field.lifetime == life::live ? "live" : "restart", cell(field.sentence));
    }
    return out;
}

} // namespace tidepool
