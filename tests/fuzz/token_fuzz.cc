// Capabilities: nothing but a token of our key is granted anything; adding caveats never widens.
// Inputs are used three ways: as a token, as the bytes of one (base64 is done here), and as a
// caveat.
#include "fuzz_check.hh"
#include "proto/cap/capability.hh"

#include <algorithm>

using namespace tidepool;
using namespace tidepool::cap;
using tidepool::fuzz::check;

namespace {

const keyring& keys() {
    static const keyring ring = keyring::parse("k " + std::string(64, '7')).value();
    return ring;
}

request_facts facts() {
    return {.method = "GET",
        .path = "/v1/echo/a",
        .account = "alice",
        .body_bytes = 10,
        .audience = "node",
        .now_unix_s = 1'000};
}

const std::string& root_token() {
    static const std::string token = mint(keys(), "k", {"path=/v1"}).value();
    return token;
}

std::string base64(std::string_view in) {
    constexpr std::string_view digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    std::string out;
    for (size_t i = 0; i < in.size(); i += 3) {
        unsigned group = 0;
        for (size_t j = 0; j < 3; ++j) {
            group = group << 8 | (i + j < in.size() ? static_cast<uint8_t>(in[i + j]) : 0U);
        }
        for (size_t j = 0; j < std::min<size_t>(4, in.size() - i + 1); ++j) {
            out += digits[group >> (18 - 6 * j) & 63];
        }
    }
    return out;
}

// No input is signed with our key, short of guessing it, so none may be granted.
void try_token(std::string_view token) {
    const auto granted = verify(keys(), token, facts());
    check(!granted, "a foreign token is refused");
    check(granted.error().code == errc::unauthorized || granted.error().code == errc::forbidden,
        "401 or 403");
    if (const auto shown = inspect(token)) {
        const auto narrowed = attenuate(token, {"rate=1"});
        check(narrowed || narrowed.error().code != errc::unauthorized,
            "what reads can be attenuated");
    }
}

void try_caveat(std::string_view caveat) {
    const auto more = attenuate(root_token(), {std::string(caveat)});
    const auto problem = caveat_problem(caveat);
    if (!more) {
        check(more.error().code == errc::bad_request, "a bad caveat is a bad request");
        return;
    }
    check(!problem, "only a well-formed caveat is added");
    check(more->size() <= token_max_bytes, "tokens are bounded");
    const auto shown = inspect(*more);
    check(shown && shown->caveats.size() == 2 && shown->caveats[0] == "path=/v1",
        "both caveats are there");
    const auto granted = verify(keys(), *more, facts());
    check(granted || granted.error().code == errc::forbidden,
        "a genuine token is never called forged");
    auto elsewhere = facts();
    elsewhere.path = "/v2";
    check(!verify(keys(), *more, elsewhere), "a caveat more never widens");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view in(reinterpret_cast<const char*>(data), size);
    try_token(in);
    try_token(base64(in));
    try_caveat(in);
    static_cast<void>(keyring::parse(in));
    return 0;
}
