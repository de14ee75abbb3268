#include "node/options.hh"

#include <string_view>

namespace tidepool {

std::string node_usage() {
    return "usage: tidepool [--config FILE] [--set key=value]... [-- seastar options]\n"
           "  --config FILE    read the configuration (docs/CONFIG.md); without it the defaults "
           "hold\n"
           "  --set key=value  override one key; may be repeated\n"
           "  --check          check the configuration and exit\n"
           "  --queues         print the table of queues (docs/CONCURRENCY.md) and exit\n"
           "  --version, --help\n"
           "Signals: SIGTERM and SIGINT drain and stop, SIGHUP reads the configuration and the "
           "keys again.\n"
           "Exit: 0 clean stop, 1 failed or unclean stop, 2 usage or configuration.\n";
}

std::expected<node_options, std::string> parse_node_options(int argc, char** argv) {
    using action = node_options::action;
    node_options out;
    out.sources.environment = config_environment();
    for (int i = 1; i < argc; ++i) {
        const std::string_view arg = argv[i];
        const bool has_value = i + 1 < argc;
        if (arg == "--") {
            out.seastar.assign(argv + i + 1, argv + argc);
            break;
        }
        if (arg == "--config" && has_value) {
            out.sources.file = argv[++i];
        } else if (arg == "--set" && has_value) {
            out.sources.sets.emplace_back(argv[++i]);
        } else if (arg == "--check") {
            out.what = action::check;
        } else if (arg == "--queues") {
            out.what = action::queues;
        } else if (arg == "--help" || arg == "-h") {
            out.what = action::help;
        } else if (arg == "--version") {
            out.what = action::version;
        } else {
            return std::unexpected(
                "tidepool: unknown or incomplete option " + std::string(arg) + "; see --help");
        }
    }
    return out;
}

} // namespace tidepool
