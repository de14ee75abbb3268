#include "../seed.hh"
#include "proto/http/chunked.hh"

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

using namespace tidepool;
using namespace tidepool::http;

namespace {

struct decoded {
    parse_state state = parse_state::need_more;
    std::string body;
    size_t consumed = 0;
    error problem;
};

// Feeds one piece as far as the decoder goes; true when it has come to an end.
bool feed(chunked_decoder& decoder, std::string_view piece, decoded& out) {
    while (!piece.empty()) {
        const auto step = decoder.next(piece);
        BOOST_TEST_REQUIRE(step.consumed <= piece.size());
        out.body += step.data;
        out.consumed += step.consumed;
        out.state = step.state;
        out.problem = step.problem;
        piece.remove_prefix(step.consumed);
        if (step.state != parse_state::need_more) {
            return true;
        }
        BOOST_TEST_REQUIRE(step.consumed > 0u);
    }
    return false;
}

decoded decode(const std::vector<std::string_view>& pieces, uint64_t limit = 1 << 20) {
    chunked_decoder decoder(limit);
    decoded out;
    for (const auto piece : pieces) {
        if (feed(decoder, piece, out)) {
            break;
        }
    }
    return out;
}

decoded decode(std::string_view bytes, uint64_t limit = 1 << 20) {
    return decode(std::vector{bytes}, limit);
}

std::string random_chunks(test::random_engine& random, std::string_view body) {
    std::string out;
    while (!body.empty()) {
        const auto chunk = body.substr(0, test::draw(random, 1, 300));
        body.remove_prefix(chunk.size());
        const auto size = test::draw(random, 0, 1) ? fmt::format("{:x}", chunk.size())
                                                   : fmt::format("{:04X}", chunk.size());
        out += fmt::format("{}{}\r\n", size, test::draw(random, 0, 3) ? "" : ";name=\"v\"");
        out += chunk;
        out += "\r\n";
    }
    return out
           + (test::draw(random, 0, 1) ? "0\r\n\r\n" : "000;x\r\nTrailer: 1\r\nOther:2\r\n\r\n");
}

void check_refused(
    std::string_view bytes, errc code = errc::bad_request, uint64_t limit = 1 << 20) {
    BOOST_TEST_CONTEXT("body: " << bytes.substr(0, 80)) {
        const auto out = decode(bytes, limit);
        BOOST_TEST_REQUIRE((out.state == parse_state::failed));
        BOOST_TEST(name(out.problem.code) == name(code));
        BOOST_TEST(out.problem.field == "chunked body");
    }
    // A byte at a time ends in the same refusal at the same byte.
    std::vector<std::string_view> single;
    for (size_t i = 0; i < bytes.size(); ++i) {
        single.push_back(bytes.substr(i, 1));
    }
    const auto whole = decode(bytes, limit);
    const auto dripped = decode(single, limit);
    BOOST_TEST(whole.problem.message == dripped.problem.message);
    BOOST_TEST(whole.consumed == dripped.consumed);
}

} // namespace

BOOST_AUTO_TEST_SUITE(chunked)

BOOST_AUTO_TEST_CASE(golden_bodies) {
    const auto out = decode("4\r\nWiki\r\n5\r\npedia\r\n0\r\n\r\n");
    BOOST_TEST((out.state == parse_state::done));
    BOOST_TEST(out.body == "Wikipedia");
    BOOST_TEST((decode("0\r\n\r\n").state == parse_state::done));
    BOOST_TEST(decode("a;x=y\r\n0123456789\r\n0\r\nT: v\r\n\r\n").body == "0123456789");
    BOOST_TEST((decode("00000001\r\nx\r\n0\r\n\r\n").state == parse_state::done));
    BOOST_TEST(decode("2\r\n\r\n\r\n0\r\n\r\n").body == "\r\n");
}

BOOST_AUTO_TEST_CASE(round_trip_in_random_chunks_and_pieces) {
    auto random = test::random_for("chunked/round_trip");
    for (int round = 0; round < 500; ++round) {
        const auto body = test::random_bytes(random, test::draw(random, 0, 3'000));
        const auto bytes = random_chunks(random, body);
        const auto out = decode(test::random_pieces(random, bytes), body.size());
        BOOST_TEST_REQUIRE((out.state == parse_state::done), out.problem.message);
        BOOST_TEST_REQUIRE((out.body == body));
        BOOST_TEST_REQUIRE(out.consumed == bytes.size());
    }
}

BOOST_AUTO_TEST_CASE(every_split_point_gives_the_same) {
    const std::string bytes = "4;ext=1\r\nWiki\r\n00a\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n";
    for (size_t cut = 1; cut < bytes.size(); ++cut) {
        const auto view = std::string_view(bytes);
        const auto out = decode({view.substr(0, cut), view.substr(cut)});
        BOOST_TEST((out.state == parse_state::done), cut);
        BOOST_TEST(out.body == "Wiki0123456789", cut);
        // Before its last byte the body is never complete.
        BOOST_TEST((decode(view.substr(0, cut)).state == parse_state::need_more), cut);
    }
}

BOOST_AUTO_TEST_CASE(limit_is_exact) {
    BOOST_TEST((decode("5\r\n12345\r\n5\r\n12345\r\n0\r\n\r\n", 10).state == parse_state::done));
    check_refused("5\r\n12345\r\n6\r\n123456\r\n0\r\n\r\n", errc::frame_too_large, 10);
    check_refused("b\r\n", errc::frame_too_large, 10);
    check_refused("1\r\n", errc::frame_too_large, 0);
    check_refused("ffffffff\r\n", errc::frame_too_large, 0xfffffffe);
    BOOST_TEST((decode("0\r\n\r\n", 0).state == parse_state::done));
    // A chunk that is too long is refused by its size, before its bytes are taken.
    const auto out = decode("5\r\n12345\r\n6\r\n123456", 10);
    BOOST_TEST(out.body == "12345");
}

BOOST_AUTO_TEST_CASE(announced_is_what_is_left_of_the_chunk) {
    chunked_decoder decoder(100);
    auto step = decoder.next("a\r\n");
    BOOST_TEST(step.consumed == 3u);
    BOOST_TEST(decoder.announced() == 10u);
    step = decoder.next("1234");
    BOOST_TEST(step.data == "1234");
    BOOST_TEST(decoder.announced() == 6u);
    step = decoder.next("567890\r\n0\r\n");
    BOOST_TEST(step.data == "567890");
    BOOST_TEST(decoder.announced() == 0u);
}

BOOST_AUTO_TEST_CASE(bad_sizes) {
    for (const auto* bytes :
        {"\r\n", ";x\r\n", "g\r\n", "-1\r\n", "+1\r\n", "0x1\r\n", " 1\r\n", "1 \r\n", "1 ;x\r\n",
            "000000001\r\n", "123456789\r\n", "\n", "1g\r\n", "1,2\r\n", "\"1\"\r\n", "1.0\r\n"}) {
        check_refused(bytes);
    }
    check_refused(std::string_view("\0\r\n", 3));
    check_refused("1\r\nx\r\n\r\n");
}

BOOST_AUTO_TEST_CASE(line_ends_must_be_cr_lf) {
    for (const auto* bytes :
        {"1\nx\r\n0\r\n\r\n", "1\rx\r\n0\r\n\r\n", "1\r\rx", "1\r\nx\n", "1\r\nx\rx", "1\r\nxy",
            "1\r\nxx\r\n", "1\r\nx0\r\n\r\n", "1\r\nx\r0", "0\n\n", "0\r\n\n", "0\r\n\rx",
            "0\r\n\r\r", "0\r\nT: 1\n", "0\r\nT: 1\rx", "0\r\nT: 1\r\n\n", "1;x\nx", "1;x\rx"}) {
        check_refused(bytes);
    }
}

BOOST_AUTO_TEST_CASE(control_characters_in_what_is_dropped) {
    for (unsigned byte = 0; byte < 256; ++byte) {
        const char c = static_cast<char>(byte);
        if (c == '\r') {
            continue;
        }
        const bool allowed = (byte >= 0x20 && byte != 0x7f) || c == '\t';
        for (const std::string_view before : {"1;a", "0\r\n", "0\r\nT: "}) {
            const auto out = decode(std::string(before) + c);
            BOOST_TEST((out.state == (allowed ? parse_state::need_more : parse_state::failed)),
                before << " byte " << byte);
        }
    }
}

BOOST_AUTO_TEST_CASE(extensions_and_trailers_are_bounded_together) {
    constexpr size_t bound = 8'192;
    const auto extension = [](size_t n) { return "1;" + std::string(n, 'e') + "\r\nx\r\n"; };
    const auto trailer = [](size_t n) { return "0\r\n" + std::string(n, 't') + "\r\n\r\n"; };
    BOOST_TEST((decode(extension(bound) + "0\r\n\r\n").state == parse_state::done));
    check_refused(extension(bound + 1));
    BOOST_TEST((decode(trailer(bound)).state == parse_state::done));
    check_refused(trailer(bound + 1));
    BOOST_TEST((decode(extension(bound / 2) + trailer(bound / 2)).state == parse_state::done));
    check_refused(extension(bound / 2) + trailer(bound / 2 + 1));
    check_refused(extension(bound / 2) + extension(bound / 2) + extension(1));
}

BOOST_AUTO_TEST_CASE(bytes_after_the_end_are_left) {
    const std::string body = "1\r\nx\r\n0\r\n\r\n";
    const auto out = decode(body + "GET / HTTP/1.1\r\n");
    BOOST_TEST((out.state == parse_state::done));
    BOOST_TEST(out.consumed == body.size());
    chunked_decoder decoder(10);
    decoded first;
    BOOST_TEST(feed(decoder, body, first));
    const auto again = decoder.next("more");
    BOOST_TEST((again.state == parse_state::done));
    BOOST_TEST(again.consumed == 0u);
    BOOST_TEST(again.data.empty());
}

BOOST_AUTO_TEST_CASE(random_bytes_split_the_same) {
    auto random = test::random_for("chunked/random_bytes_split_the_same");
    for (int round = 0; round < 3'000; ++round) {
        auto bytes = random_chunks(random, test::random_bytes(random, test::draw(random, 0, 60)));
        for (uint64_t i = test::draw(random, 0, 2); i > 0; --i) {
            bytes[test::draw(random, 0, bytes.size() - 1)] =
                "\r\n;0fx\t\x7f"[test::draw(random, 0, 7)];
        }
        const auto whole = decode(bytes, 64);
        const auto split = decode(test::random_pieces(random, bytes), 64);
        BOOST_TEST((whole.state == split.state));
        BOOST_TEST((whole.body == split.body));
        BOOST_TEST(whole.consumed == split.consumed);
        BOOST_TEST(whole.problem.message == split.problem.message);
    }
}

BOOST_AUTO_TEST_SUITE_END()
