#include "text_table.hh"

#include <algorithm>
#include <fmt/format.h>

namespace tidepool::ctl {

std::string text_table::str() const {
    std::vector<size_t> widths(_rows.front().size(), 0);
    for (const auto& row : _rows) {
        for (size_t i = 0; i < widths.size(); ++i) {
            widths[i] = std::max(widths[i], row[i].size());
        }
    }
    std::string out;
    for (const auto& row : _rows) {
        out += fmt::format("{:<{}}", row[0], widths[0]);
        for (size_t i = 1; i < widths.size(); ++i) {
            out += fmt::format("  {:>{}}", row[i], widths[i]);
        }
        out += '\n';
    }
    return out;
}

} // namespace tidepool::ctl
