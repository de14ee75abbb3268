// tidepool: one process, one reactor per core. This file only turns a command line into a running
// node.
#include "node/node.hh"
#include "node/options.hh"
#include "shards/edge/ops_routes.hh"
#include "shards/runtime/config/reactor_options.hh"
#include "shards/runtime/logs.hh"

#include <cstdio>
#include <fmt/format.h>
#include <seastar/core/app-template.hh>
#include <seastar/core/on_internal_error.hh>

namespace {

using namespace tidepool;

int run_node(const node_options& options, const loaded_config& loaded) {
    const auto began = std::chrono::steady_clock::now();
    std::vector<std::string> args{"tidepool"};
    for (auto& option : reactor_options(loaded.values.reactor)) {
        args.push_back(std::move(option));
    }
    args.insert(args.end(), options.seastar.begin(), options.seastar.end());
    std::vector<char*> argv;
    for (auto& arg : args) {
        argv.push_back(arg.data());
    }
    set_log_format(loaded.values.log);
    // A breach of ownership is a bug that must not go on to corrupt anything.
    seastar::set_abort_on_internal_error(true);
    seastar::app_template::config app_config;
    app_config.name = "tidepool";
    app_config.auto_handle_sigint_sigterm = false;
    seastar::app_template app(app_config);
    node the_node(options.sources, loaded, began);
    return app.run(static_cast<int>(argv.size()), argv.data(), [&] {
        apply_log_levels(loaded.values.log);
        return the_node.run();
    });
}

int act(const node_options& options) {
    using action = node_options::action;
    switch (options.what) {
    case action::help:
        fmt::print("{}", node_usage());
        return 0;
    case action::version:
        fmt::print("tidepool {}\n", product_version());
        return 0;
    case action::queues:
        fmt::print("{}", node::concurrency_docs());
        return 0;
    case action::check:
    case action::run:
        break;
    }
    const auto loaded = load_config(options.sources);
    if (!loaded) {
        for (const auto& problem : loaded.error()) {
            fmt::print(stderr, "tidepool: {}\n", problem.text());
        }
        return 2;
    }
    if (options.what == action::check) {
        fmt::print("configuration is valid\n");
        return 0;
    }
    return run_node(options, *loaded);
}

} // namespace

int main(int argc, char** argv) {
    const auto options = tidepool::parse_node_options(argc, argv);
    if (!options) {
        fmt::print(stderr, "{}\n", options.error());
        return 2;
    }
    return act(*options);
}
