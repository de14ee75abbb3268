// Runs every file given, or in the folders given, through a fuzz target: the corpus as an ordinary
// test.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_of(int count, char** arguments) {
    std::vector<fs::path> files;
    for (int i = 1; i < count; ++i) {
        const fs::path given = arguments[i];
        if (!fs::is_directory(given)) {
            files.push_back(given);
            continue;
        }
        for (const auto& entry : fs::recursive_directory_iterator(given)) {
            if (entry.is_regular_file()) {
                files.push_back(entry.path());
            }
        }
    }
    std::ranges::sort(files);
    return files;
}

bool replay(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    if (!in) {
        std::fprintf(stderr, "%s cannot be read\n", file.c_str());
        return false;
    }
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    // Named first: a crash then shows which input it was. Copied to the exact size: a read past it
    // is seen.
    std::printf("%s\n", file.c_str());
    std::fflush(stdout);
    const std::vector<uint8_t> exact(bytes.begin(), bytes.end());
    LLVMFuzzerTestOneInput(exact.data(), exact.size());
    return true;
}

} // namespace

int main(int count, char** arguments) {
    const auto files = files_of(count, arguments);
    const bool all_read = std::ranges::all_of(files, replay);
    std::printf("%zu inputs replayed\n", files.size());
    return all_read && !files.empty() ? 0 : 1;
}
