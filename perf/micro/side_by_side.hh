// Two ways to do a thing, measured in turns in one run: the machine's moods hit both. Prints both
// medians and the ratio; ratios are what counts, times are for orientation.
#pragma once

#include <algorithm>
#include <fmt/format.h>
#include <string_view>
#include <vector>

namespace tidepool::perf {

inline double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

inline void print_ratio(std::string_view name, std::string_view ours, double our_figure,
    std::string_view theirs, double their_figure, std::string_view unit) {
    fmt::print("{} {} {:.1f} {}\n", name, ours, our_figure, unit);
    fmt::print("{} {} {:.1f} {}\n", name, theirs, their_figure, unit);
    fmt::print("RATIO {} {:.2f}\n", name, our_figure / their_figure);
}

} // namespace tidepool::perf
