#include "seed.hh"

#include <boost/test/unit_test.hpp>
#include <cstdlib>

namespace tidepool::test {

namespace {

uint64_t choose_seed() {
    const char* wanted = std::getenv("TIDEPOOL_TEST_SEED");
    return wanted ? std::strtoull(wanted, nullptr, 10) : std::random_device{}();
}

} // namespace

uint64_t run_seed() {
    static const uint64_t seed = choose_seed();
    return seed;
}

random_engine random_for(std::string_view test_name) {
    BOOST_TEST_MESSAGE(test_name << ": TIDEPOOL_TEST_SEED=" << run_seed());
    std::seed_seq mixed(test_name.begin(), test_name.end());
    random_engine by_name(mixed);
    return random_engine(by_name() ^ run_seed());
}

std::string random_bytes(random_engine& random, size_t size) {
    std::string out(size, '\0');
    for (char& c : out) {
        c = static_cast<char>(draw(random, 0, 255));
    }
    return out;
}

std::vector<std::string_view> random_pieces(random_engine& random, std::string_view bytes) {
    std::vector<std::string_view> pieces;
    const uint64_t longest = draw(random, 1, 40);
    while (!bytes.empty()) {
        const auto piece = bytes.substr(0, draw(random, 1, longest));
        pieces.push_back(piece);
        bytes.remove_prefix(piece.size());
    }
    return pieces;
}

} // namespace tidepool::test
