// From file, environment and flags to one checked tree. Flags win over environment, environment
// over file, file over defaults. All problems are reported together, each with where it stands and
// what is allowed.
#pragma once

#include "shards/runtime/config/config.hh"
#include "shards/runtime/config/schema.hh"

#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidepool {

struct config_problem {
    std::string where; // "conf/local.yaml:12", "environment TIDEPOOL_...", "--set"
    std::string key;
    std::string message;

    std::string text() const;
};

struct config_sources {
    std::string file;                                             // empty: none
    std::vector<std::pair<std::string, std::string>> environment; // TIDEPOOL_A__B -> value
    std::vector<std::string> sets;                                // "a.b=value"
};

struct loaded_config {
    config values;
    std::map<std::string, std::string> origins; // key -> where it was set, for those that were
};

using load_result = std::expected<loaded_config, std::vector<config_problem>>;

// Reads the file named in the sources, then as below.
load_result load_config(const config_sources&);

// The same over a text that is in memory already; `file` is only for messages. What the fuzzer
// drives.
load_result load_config_text(std::string_view yaml, const config_sources&);

// All TIDEPOOL_X__Y variables of this process. Names without "__" are not configuration.
std::vector<std::pair<std::string, std::string>> config_environment();

struct config_change {
    std::string key;
    std::string from;
    std::string to;
};

// What a reload would do: `merged` is `next` with the running node's values for restart fields.
struct config_diff {
    config merged;
    std::vector<config_change> live;
    std::vector<config_change> needs_restart;
};

config_diff diff_config(const config& running, const config& next);

// The effective tree as YAML that loads again.
std::string show_config(const config&);

// docs/CONFIG.md.
std::string config_docs();

} // namespace tidepool
