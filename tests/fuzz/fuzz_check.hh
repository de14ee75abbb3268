// An invariant of a fuzz target. abort() rather than assert(): it must hold in every build.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace tidepool::fuzz {

inline void check(bool holds, const char* what) {
    if (!holds) {
        std::fprintf(stderr, "violated: %s\n", what);
        std::abort();
    }
}

inline bool inside(std::string_view part, std::string_view whole) {
    return part.empty()
           || (part.data() >= whole.data()
               && part.data() + part.size() <= whole.data() + whole.size());
}

} // namespace tidepool::fuzz
