#include "shards/runtime/logs.hh"

#include "proto/base/json_out.hh"
#include "shards/runtime/logger.hh"

#include <iostream>
#include <streambuf>
#include <unistd.h>

namespace tidepool {

ss::logger runtime_log("runtime");

namespace {

// Seastar writes whole lines: "INFO  2026-11-16 00:00:00,000 [shard 0:edge] http - text". This
// turns each into a JSON object and hands it to the kernel in one write, so lines of different
// cores never mix. The line is put together in memory of the calling thread; nothing is shared.
class json_line_buffer : public std::streambuf {
    static std::string& line() {
        thread_local std::string text;
        return text;
    }

    static void write_out(std::string_view text) {
        const auto level = text.substr(0, text.find(' '));
        const auto open = text.find(" [");
        const auto close = text.find("] ", open);
        const auto dash = text.find(" - ", close);
        json_object out;
        if (open == text.npos || close == text.npos || dash == text.npos) {
            out.add("message", text);
        } else {
            const auto stamp_at = text.find_first_not_of(' ', level.size());
            out.add("time", text.substr(stamp_at, open - stamp_at));
            out.add("level", level);
            out.add("core", text.substr(open + 2, close - open - 2));
            out.add("logger", text.substr(close + 2, dash - close - 2));
            out.add("message", text.substr(dash + 3));
        }
        auto json = std::move(out).str() + "\n";
        // A log line that cannot be written has nowhere to be reported.
        [[maybe_unused]] const auto written = ::write(STDERR_FILENO, json.data(), json.size());
    }

protected:
    std::streamsize xsputn(const char* data, std::streamsize size) override {
        auto& text = line();
        text.append(data, static_cast<size_t>(size));
        for (auto end = text.find('\n'); end != text.npos; end = text.find('\n')) {
            write_out(std::string_view(text).substr(0, end));
            text.erase(0, end + 1);
        }
        return size;
    }
    int_type overflow(int_type c) override {
        const char byte = traits_type::to_char_type(c);
        xsputn(&byte, 1);
        return c;
    }
};

ss::log_level level_of(const std::string& name) {
    static const std::map<std::string, ss::log_level> levels{{"trace", ss::log_level::trace},
        {"debug", ss::log_level::debug}, {"info", ss::log_level::info},
        {"warn", ss::log_level::warn}, {"error", ss::log_level::error}};
    return levels.at(name);
}

} // namespace

void set_log_format(const log_config& c) {
    if (c.format == "json") {
        // Seastar logs to cerr and says so again when it starts; so cerr itself is what changes.
        // Never destroyed: something may log until the very end.
        std::cerr.rdbuf(new json_line_buffer);
    }
}

void apply_log_levels(const log_config& c) {
    auto& registry = ss::global_logger_registry();
    registry.set_all_loggers_level(level_of(c.level));
    for (const auto& name : registry.get_all_logger_names()) {
        if (const auto found = c.levels.find(name); found != c.levels.end()) {
            registry.set_logger_level(name, level_of(found->second));
        }
    }
}

} // namespace tidepool
