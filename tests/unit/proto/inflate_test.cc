#include "../seed.hh"
#include "proto/http/inflate.hh"

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>
#include <zlib.h>

using namespace tidepool;
using namespace tidepool::http;

namespace {

constexpr inflate_limits roomy{.max_bytes = 64 << 20, .max_ratio = 100'000};
constexpr int gzip_bits = 31, zlib_bits = 15, raw_bits = -15;
constexpr size_t step_bytes = 64 * 1024;

std::string pack(std::string_view plain, int bits, int level = 6) {
    z_stream z{};
    BOOST_TEST_REQUIRE(deflateInit2(&z, level, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    std::string out(deflateBound(&z, plain.size()) + 64, '\0');
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
    z.avail_in = static_cast<uInt>(plain.size());
    z.next_out = reinterpret_cast<Bytef*>(out.data());
    z.avail_out = static_cast<uInt>(out.size());
    BOOST_TEST_REQUIRE(deflate(&z, Z_FINISH) == Z_STREAM_END);
    out.resize(out.size() - z.avail_out);
    deflateEnd(&z);
    return out;
}

struct unpacked {
    result<bool> end = false;
    std::string body;
    size_t steps = 0;
};

unpacked unpack(coding c, std::string_view packed, inflate_limits limits = roomy) {
    inflater work(c, packed, limits);
    unpacked out;
    while (out.end && !*out.end) {
        out.end = work.step();
        ++out.steps;
        BOOST_TEST_REQUIRE(out.steps < 100'000u);
    }
    out.body = std::move(work).take();
    return out;
}

void check_refused(coding c, std::string_view packed, errc code, inflate_limits limits = roomy) {
    const auto out = unpack(c, packed, limits);
    BOOST_TEST_REQUIRE(!out.end.has_value());
    BOOST_TEST(name(out.end.error().code) == name(code));
    BOOST_TEST(out.end.error().field == "body");
}

std::string some_text(test::random_engine& random, size_t size) {
    std::string out;
    while (out.size() < size) {
        out += test::draw(random, 0, 2) ? "tidepool " : test::random_bytes(random, 9);
    }
    out.resize(size);
    return out;
}

} // namespace

BOOST_AUTO_TEST_SUITE(inflating)

BOOST_AUTO_TEST_CASE(round_trip_of_each_format) {
    auto random = test::random_for("inflating/round_trip");
    for (const size_t size : {size_t(0), size_t(1), size_t(1'000), step_bytes - 1, step_bytes,
             step_bytes + 1, 3 * step_bytes, size_t(400'000)}) {
        const auto plain = some_text(random, size);
        for (const int level : {0, 1, 9}) {
            for (const int bits : {gzip_bits, zlib_bits, raw_bits}) {
                const auto packed = pack(plain, bits, level);
                const auto out = unpack(bits == gzip_bits ? coding::gzip : coding::deflate, packed);
                BOOST_TEST_REQUIRE(
                    out.end.has_value(), size << " bits " << bits << " level " << level);
                BOOST_TEST((out.body == plain));
                BOOST_TEST(out.steps <= size / step_bytes + 2);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(size_limit_is_exact) {
    auto random = test::random_for("inflating/size_limit");
    for (const size_t size :
        {size_t(1), size_t(1'000), step_bytes, step_bytes + 1, size_t(200'000)}) {
        const auto plain = some_text(random, size);
        for (const int bits : {gzip_bits, zlib_bits, raw_bits}) {
            const auto c = bits == gzip_bits ? coding::gzip : coding::deflate;
            const auto packed = pack(plain, bits);
            BOOST_TEST((unpack(c, packed, {size, 100'000}).body == plain));
            check_refused(c, packed, errc::frame_too_large, {size - 1, 100'000});
        }
    }
}

BOOST_AUTO_TEST_CASE(ratio_limit_is_exact) {
    const std::string plain(50'000, 'a');
    auto packed = pack(plain, gzip_bits);
    const uint64_t below = plain.size() / packed.size();
    BOOST_TEST_REQUIRE(plain.size() % packed.size() != 0u);
    BOOST_TEST((unpack(coding::gzip, packed, {1 << 20, below + 1}).body == plain));
    check_refused(coding::gzip, packed, errc::frame_too_large, {1 << 20, below});
    // A body that does not shrink passes any ratio.
    auto random = test::random_for("inflating/ratio_limit");
    const auto noise = test::random_bytes(random, 10'000);
    BOOST_TEST((unpack(coding::gzip, pack(noise, gzip_bits), {1 << 20, 1}).body == noise));
}

BOOST_AUTO_TEST_CASE(bomb_costs_no_more_than_its_limit) {
    const auto bomb = pack(std::string(64 << 20, '\0'), gzip_bits, 9);
    BOOST_TEST_REQUIRE(bomb.size() < 100'000u);
    for (const uint64_t limit :
        {uint64_t(0), uint64_t(1'000), uint64_t(step_bytes), uint64_t(1 << 20)}) {
        const auto out = unpack(coding::gzip, bomb, {limit, 100'000});
        BOOST_TEST_REQUIRE(!out.end.has_value());
        BOOST_TEST((out.end.error().code == errc::frame_too_large));
        BOOST_TEST(out.body.size() <= limit + step_bytes);
        BOOST_TEST(out.steps <= limit / step_bytes + 1);
    }
    const auto by_ratio = unpack(coding::gzip, bomb, {1 << 30, 10});
    BOOST_TEST_REQUIRE(!by_ratio.end.has_value());
    BOOST_TEST(by_ratio.body.size() <= 10 * bomb.size() + step_bytes);
}

BOOST_AUTO_TEST_CASE(a_step_after_the_refusal_refuses_again) {
    const auto packed = pack(std::string(500'000, 'a'), gzip_bits);
    inflater work(coding::gzip, packed, {100, 100'000});
    for (int i = 0; i < 3; ++i) {
        const auto end = work.step();
        BOOST_TEST_REQUIRE(!end.has_value());
        BOOST_TEST((end.error().code == errc::frame_too_large));
    }
}

BOOST_AUTO_TEST_CASE(cut_off_at_every_byte) {
    auto random = test::random_for("inflating/cut_off");
    for (const int bits : {gzip_bits, zlib_bits, raw_bits}) {
        const auto packed = pack(some_text(random, 2'000), bits);
        for (size_t size = 0; size < packed.size(); ++size) {
            const auto c = bits == gzip_bits ? coding::gzip : coding::deflate;
            check_refused(c, std::string_view(packed).substr(0, size), errc::bad_request);
        }
    }
}

BOOST_AUTO_TEST_CASE(cut_off_where_a_step_ends) {
    // All output of the first step is there, and nothing after it.
    for (const size_t size : {step_bytes, 2 * step_bytes}) {
        const auto packed = pack(std::string(size, 'a'), gzip_bits, 0);
        check_refused(
            coding::gzip, std::string_view(packed).substr(0, packed.size() - 8), errc::bad_request);
    }
}

BOOST_AUTO_TEST_CASE(damage_is_seen_in_gzip_and_zlib) {
    auto random = test::random_for("inflating/damage");
    for (int round = 0; round < 400; ++round) {
        const int bits = round % 2 ? gzip_bits : zlib_bits;
        const auto plain = some_text(random, 500);
        auto packed = pack(plain, bits);
        // Beyond the header: of gzip's some bytes (time, system) mean nothing.
        const size_t at = test::draw(random, bits == gzip_bits ? 10 : 2, packed.size() - 1);
        packed[at] = static_cast<char>(packed[at] ^ (1 << test::draw(random, 0, 7)));
        const auto out = unpack(bits == gzip_bits ? coding::gzip : coding::deflate, packed);
        // The end-of-block padding carries nothing, so a flip there changes nothing.
        BOOST_TEST((!out.end.has_value() || out.body == plain));
    }
    check_refused(coding::gzip, "no gzip at all, just text", errc::bad_request);
    check_refused(coding::gzip, pack("zlib", zlib_bits), errc::bad_request);
    check_refused(coding::deflate, pack("gzip", gzip_bits), errc::bad_request);
    auto wrong_sum = pack("checked", gzip_bits);
    wrong_sum[wrong_sum.size() - 5] ^= 1;
    check_refused(coding::gzip, wrong_sum, errc::bad_request);
}

BOOST_AUTO_TEST_CASE(bytes_after_the_end) {
    for (const int bits : {gzip_bits, zlib_bits, raw_bits}) {
        const auto c = bits == gzip_bits ? coding::gzip : coding::deflate;
        const auto packed = pack("body", bits);
        check_refused(c, packed + "x", errc::bad_request);
        check_refused(c, packed + packed, errc::bad_request);
    }
}

BOOST_AUTO_TEST_CASE(random_bytes_never_pass_a_limit) {
    auto random = test::random_for("inflating/random_bytes");
    for (int round = 0; round < 2'000; ++round) {
        const auto bytes = test::random_bytes(random, test::draw(random, 0, 200));
        const auto out = unpack(round % 2 ? coding::gzip : coding::deflate, bytes, {1'000, 10});
        BOOST_TEST(out.body.size() <= 1'001u);
    }
}

BOOST_AUTO_TEST_SUITE_END()
