#include "../seed.hh"
#include "proto/http/head.hh"

#include <boost/test/unit_test.hpp>
#include <deque>
#include <fmt/format.h>
#include <vector>

using namespace tidepool;
using namespace tidepool::http;

namespace {

constexpr size_t head_max = 16 * 1024;

struct parsed {
    head_outcome outcome;
    request_head head;
};

parsed parse_whole(std::string_view bytes, size_t max_bytes = head_max) {
    parsed p;
    size_t scanned = 0;
    p.outcome = parse_head(bytes, max_bytes, scanned, p.head);
    return p;
}

// Feeds growing prefixes, as a connection does, until the parser has an answer.
parsed parse_in_pieces(std::string_view bytes, const std::vector<size_t>& ends, size_t max_bytes) {
    parsed p;
    size_t scanned = 0;
    for (const size_t end : ends) {
        p.outcome = parse_head(bytes.substr(0, end), max_bytes, scanned, p.head);
        if (p.outcome.state != parse_state::need_more) {
            break;
        }
    }
    return p;
}

std::string describe(const parsed& p) {
    if (p.outcome.state == parse_state::need_more) {
        return "need more";
    }
    if (p.outcome.state == parse_state::failed) {
        const auto& e = p.outcome.problem;
        // Not the message: a piece may show less of what is wrong than the whole.
        return fmt::format("failed {} {}", name(e.code), e.field);
    }
    const auto& h = p.head;
    auto out =
        fmt::format("{} {} {} {} 1.0={} keep={} chunked={} expect={} coding={} length={} {} {}",
            p.outcome.consumed, http::name(h.verb), h.path, h.query, h.http_1_0, h.keep_alive,
            h.chunked, h.expect_continue, static_cast<int>(h.content_coding),
            h.content_length ? fmt::to_string(*h.content_length) : "none", h.host, h.authorization);
    for (const auto& line : h.headers()) {
        out += fmt::format("\n{}={}", line.name, line.value);
    }
    return out;
}

std::string head_with(std::string_view headers, std::string_view line = "GET /a HTTP/1.1") {
    return fmt::format("{}\r\nHost: a\r\n{}\r\n", line, headers);
}

void check_refused(std::string_view bytes, errc code, std::string_view field) {
    BOOST_TEST_CONTEXT("head: " << bytes) {
        const auto p = parse_whole(bytes);
        BOOST_TEST_REQUIRE((p.outcome.state == parse_state::failed));
        BOOST_TEST(name(p.outcome.problem.code) == name(code));
        BOOST_TEST(p.outcome.problem.field == field);
        BOOST_TEST(!p.outcome.problem.message.empty());
    }
}

// The head's views point into a copy that is kept to the end.
request_head accept_head(std::string given) {
    static std::deque<std::string> kept;
    const std::string_view bytes = kept.emplace_back(std::move(given));
    const auto p = parse_whole(bytes);
    BOOST_TEST_REQUIRE(describe(p).find("failed") == std::string::npos, describe(p));
    BOOST_TEST_REQUIRE((p.outcome.state == parse_state::done), "not complete: " << bytes);
    BOOST_TEST(p.outcome.consumed == bytes.size());
    return p.head;
}

std::string many_headers(size_t count) {
    std::string out = "GET / HTTP/1.1\r\nHost: a\r\n";
    for (size_t i = 1; i < count; ++i) {
        out += fmt::format("X-{}: {}\r\n", i, i);
    }
    return out + "\r\n";
}

std::string head_of_size(size_t size) {
    const std::string start = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
    return start + std::string(size - start.size() - 4, 'x') + "\r\n\r\n";
}

// Heads that end in CR LF CR LF, good and bad.
const std::vector<std::string>& samples() {
    static const std::vector<std::string> all{
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\nGET /led?by=line HTTP/1.1\r\nHost: a\r\n\r\n",
        "PUT /v1/echo/k?x=1&y=%20 HTTP/1.1\r\nHost: a:80\r\nContent-Length: 12\r\n"
        "Authorization: Bearer abc\r\nExpect: 100-continue\r\n\r\n",
        "POST /p HTTP/1.1\r\nHOST:a\r\nTransfer-Encoding: Chunked\r\nContent-Encoding: "
        "GZIP\r\n\r\n",
        "GET http://other/p?q HTTP/1.1\r\nHost: other\r\nConnection: close , foo\r\n\r\n",
        "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: a\r\nEmpty:\r\nTabbed:\t x \t\r\n\r\n",
        "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n folded\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\rX\r\n\r\n",
        "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        many_headers(64),
        many_headers(65),
    };
    return all;
}

} // namespace

BOOST_AUTO_TEST_SUITE(http_head)

BOOST_AUTO_TEST_CASE(golden_get) {
    const auto h = accept_head("GET /v1/echo/key?a=1&b=2 HTTP/1.1\r\nHost: example.org:80\r\n"
                               "Authorization: Bearer t\r\nX-Odd:   two words \t\r\n\r\n");
    BOOST_TEST((h.verb == method::get));
    BOOST_TEST(h.path == "/v1/echo/key");
    BOOST_TEST(h.query == "a=1&b=2");
    BOOST_TEST(h.host == "example.org:80");
    BOOST_TEST(h.authorization == "Bearer t");
    BOOST_TEST(h.header_count == 3u);
    BOOST_TEST(h.find("x-ODD") == "two words");
    BOOST_TEST(h.find("absent") == "");
    BOOST_TEST(h.keep_alive);
    BOOST_TEST(!h.http_1_0);
    BOOST_TEST(!h.has_body());
    BOOST_TEST(!h.content_length.has_value());
}

BOOST_AUTO_TEST_CASE(golden_bodies) {
    const auto sized = accept_head(head_with("content-LENGTH: 12\r\nExpect: 100-Continue\r\n"
                                             "Content-Encoding: deflate\r\n",
        "PUT / HTTP/1.1"));
    BOOST_TEST(sized.content_length.value() == 12u);
    BOOST_TEST(sized.has_body());
    BOOST_TEST(sized.expect_continue);
    BOOST_TEST((sized.content_coding == coding::deflate));
    const auto chunked = accept_head(
        head_with("Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n", "POST / HTTP/1.1"));
    BOOST_TEST(chunked.chunked);
    BOOST_TEST(chunked.has_body());
    BOOST_TEST((chunked.content_coding == coding::gzip));
    BOOST_TEST(!accept_head(head_with("Content-Length: 0\r\n")).has_body());
}

BOOST_AUTO_TEST_CASE(every_method) {
    for (const auto verb : {method::get, method::head, method::post, method::put, method::del,
             method::patch, method::options}) {
        const auto h = accept_head(head_with("", fmt::format("{} / HTTP/1.1", http::name(verb))));
        BOOST_TEST(http::name(h.verb) == http::name(verb));
    }
    BOOST_TEST((accept_head(head_with("", "get / HTTP/1.1")).verb == method::other));
    BOOST_TEST((accept_head(head_with("", "PROPFIND / HTTP/1.1")).verb == method::other));
    BOOST_TEST(accept_head(head_with("", "OPTIONS * HTTP/1.1")).path == "*");
}

BOOST_AUTO_TEST_CASE(nothing_is_kept_from_the_head_before) {
    request_head head;
    size_t scanned = 0;
    const auto first = head_with("Content-Length: 3\r\nAuthorization: x\r\nExpect: 100-continue\r\n"
                                 "Content-Encoding: gzip\r\nConnection: close\r\n",
        "PUT /one?q HTTP/1.1");
    BOOST_TEST((parse_head(first, head_max, scanned, head).state == parse_state::done));
    scanned = 0;
    const std::string second = "GET /two HTTP/1.1\r\nHost: b\r\n\r\n";
    const auto outcome = parse_head(second, head_max, scanned, head);
    BOOST_TEST(describe({outcome, head}) == describe(parse_whole(second)));
}

BOOST_AUTO_TEST_CASE(stops_at_the_end_of_the_head) {
    const std::string one = "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n";
    const std::string both = one + "GET /2 HTTP/1.1\r\nHost: a\r\n\r\n";
    const auto p = parse_whole(both);
    BOOST_TEST((p.outcome.state == parse_state::done));
    BOOST_TEST(p.outcome.consumed == one.size());
    BOOST_TEST(p.head.path == "/1");
}

BOOST_AUTO_TEST_CASE(every_split_point_gives_the_same) {
    for (const auto& sample : samples()) {
        const auto whole = describe(parse_whole(sample));
        for (size_t cut = 1; cut < sample.size(); ++cut) {
            const auto split = describe(parse_in_pieces(sample, {cut, sample.size()}, head_max));
            BOOST_TEST(split == whole, "cut at " << cut << " of: " << sample << "\n"
                                                 << split << "\n"
                                                 << whole);
        }
    }
}

BOOST_AUTO_TEST_CASE(random_splits_give_the_same) {
    auto random = test::random_for("http_head/random_splits_give_the_same");
    for (int round = 0; round < 2'000; ++round) {
        const auto& sample = samples()[test::draw(random, 0, samples().size() - 1)];
        std::vector<size_t> ends;
        for (const auto piece : test::random_pieces(random, sample)) {
            ends.push_back(static_cast<size_t>(piece.data() + piece.size() - sample.data()));
        }
        const auto whole = describe(parse_whole(sample));
        const auto split = describe(parse_in_pieces(sample, ends, head_max));
        BOOST_TEST(split == whole, "sample: " << sample << "\n" << split << "\n" << whole);
    }
}

BOOST_AUTO_TEST_CASE(damaged_heads_split_the_same) {
    auto random = test::random_for("http_head/damaged_heads_split_the_same");
    for (int round = 0; round < 5'000; ++round) {
        auto bytes = samples()[test::draw(random, 0, samples().size() - 3)];
        for (uint64_t i = test::draw(random, 1, 3); i > 0; --i) {
            const std::string_view odd("\r\n :\t,\0\x7f/?#\x80"
                                       "aH10",
                16);
            bytes[test::draw(random, 0, bytes.size() - 1)] =
                odd[test::draw(random, 0, odd.size() - 1)];
        }
        bytes += "\r\n\r\n";
        const size_t cut = test::draw(random, 1, bytes.size() - 1);
        const auto whole = describe(parse_whole(bytes));
        const auto split = describe(parse_in_pieces(bytes, {cut, bytes.size()}, head_max));
        BOOST_TEST(split == whole, "cut at " << cut << " of: " << bytes << "\n"
                                             << split << "\n"
                                             << whole);
    }
}

BOOST_AUTO_TEST_CASE(every_prefix_needs_more) {
    for (const auto& sample : samples()) {
        if (parse_whole(sample).outcome.state != parse_state::done) {
            continue;
        }
        for (size_t size = 0; size < sample.size(); ++size) {
            const auto p = parse_whole(std::string_view(sample).substr(0, size));
            BOOST_TEST(
                (p.outcome.state == parse_state::need_more), size << " bytes of: " << sample);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_byte_at_a_time_is_searched_once) {
    const auto sample = head_of_size(4'000);
    request_head head;
    size_t scanned = 0;
    for (size_t size = 1; size < sample.size(); ++size) {
        const auto outcome =
            parse_head(std::string_view(sample).substr(0, size), head_max, scanned, head);
        BOOST_TEST_REQUIRE((outcome.state == parse_state::need_more));
        BOOST_TEST_REQUIRE(scanned == size);
    }
    BOOST_TEST((parse_head(sample, head_max, scanned, head).state == parse_state::done));
}

BOOST_AUTO_TEST_CASE(lengths_that_two_servers_could_read_differently) {
    const auto refused = [](std::string_view headers, errc code, std::string_view field) {
        check_refused(head_with(headers, "POST / HTTP/1.1"), code, field);
    };
    refused("Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", errc::bad_request,
        "Transfer-Encoding");
    refused("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", errc::bad_request,
        "Transfer-Encoding");
    refused("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", errc::bad_request,
        "Transfer-Encoding");
    for (const auto* value : {"gzip", "gzip, chunked", "chunked, chunked", "identity", "xchunked",
             "chunked;a", "", "\"chunked\"", "chunked,"}) {
        refused(fmt::format("Transfer-Encoding: {}\r\n", value), errc::unsupported,
            "Transfer-Encoding");
    }
    BOOST_TEST(info(errc::unsupported).status == 501);
    refused("Content-Length: 4\r\nContent-Length: 4\r\n", errc::bad_request, "Content-Length");
    refused("Content-Length: 0\r\nContent-Length: 4\r\n", errc::bad_request, "Content-Length");
    for (const auto* value :
        {"+4", "-4", "0x4", "4a", "a", "", "4 4", "4,4", "4, 4", "4;", "4.0", "1e3", "\"4\"",
            "12345678901234567890", "18446744073709551616", "99999999999999999999"}) {
        refused(fmt::format("Content-Length: {}\r\n", value), errc::bad_request, "Content-Length");
    }
    check_refused("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", errc::bad_request,
        "Transfer-Encoding");
}

BOOST_AUTO_TEST_CASE(lines_that_two_servers_could_end_differently) {
    check_refused("GET / HTTP/1.1\nHost: a\n\n", errc::bad_request, "head");
    check_refused("GET / HTTP/1.1\r\nHost: a\n\r\n", errc::bad_request, "head");
    check_refused("GET / HTTP/1.1\r\nHost: a\r\n\n", errc::bad_request, "head");
    check_refused("GET / HTTP/1.1\rHost: a\r\n\r\n", errc::bad_request, "head");
    check_refused("GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", errc::bad_request, "head");
    check_refused("GET / HTTP/1.1\r\nHost: a\r\n\rX", errc::bad_request, "head");
    check_refused(
        "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n folded\r\n\r\n", errc::bad_request, "head");
    check_refused(
        "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n\tfolded\r\n\r\n", errc::bad_request, "head");
    check_refused("GET / HTTP/1.1\r\n Host: a\r\n\r\n", errc::bad_request, "head");
}

BOOST_AUTO_TEST_CASE(header_names_and_values) {
    check_refused(head_with("Content-Length : 4\r\n"), errc::bad_request, "head");
    check_refused(head_with("Content-Length\t: 4\r\n"), errc::bad_request, "head");
    check_refused(head_with(": nameless\r\n"), errc::bad_request, "head");
    check_refused(head_with("no colon\r\n"), errc::bad_request, "head");
    check_refused(head_with("X(y): 1\r\n"), errc::bad_request, "head");
    check_refused(head_with("X\x80: 1\r\n"), errc::bad_request, "head");
    check_refused(head_with(std::string("X: a\0b\r\n", 8)), errc::bad_request, "head");
    check_refused(head_with("X: a\x1b[0m\r\n"), errc::bad_request, "head");
    check_refused(head_with("X: a\x7f\r\n"), errc::bad_request, "head");
    BOOST_TEST(accept_head(head_with("X: \xC3\xA9\r\n")).find("x") == "\xC3\xA9");
}

BOOST_AUTO_TEST_CASE(hosts) {
    check_refused("GET / HTTP/1.1\r\n\r\n", errc::bad_request, "Host");
    check_refused(head_with("Host: a\r\n"), errc::bad_request, "Host");
    check_refused(head_with("host: b\r\n"), errc::bad_request, "Host");
    for (const auto* host : {"a b", "a,b", "a/b", "u@a", "a\tb"}) {
        check_refused(
            fmt::format("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", host), errc::bad_request, "Host");
    }
    BOOST_TEST(accept_head("GET / HTTP/1.0\r\n\r\n").host == "");
    BOOST_TEST(accept_head("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n").host == "[::1]:80");
}

BOOST_AUTO_TEST_CASE(request_lines) {
    const auto refused = [](std::string_view line) {
        check_refused(head_with("", line), errc::bad_request, "request line");
    };
    for (const auto* line : {"GET / HTTP/2.0", "GET / HTTP/1.2", "GET / HTTP/0.9", "GET / http/1.1",
             "GET / HTTP/11", "GET  / HTTP/1.1", "GET /  HTTP/1.1", " GET / HTTP/1.1",
             "G(T / HTTP/1.1", "GET\t/ HTTP/1.1", "GET /", "/ HTTP/1.1", "GET /a b HTTP/1.1",
             "GET /\x80 HTTP/1.1", "GET /\x7f HTTP/1.1", "GET a HTTP/1.1", "GET * HTTP/1.1",
             "CONNECT a:1 HTTP/1.1", "GET ftp://a/ HTTP/1.1", "GET ?q HTTP/1.1"}) {
        refused(line);
    }
    refused("GET /a#b HTTP/1.1");
    refused("GET /a?b#c HTTP/1.1");
    refused("GET http://a/#c HTTP/1.1");
    check_refused(head_with("", "GET / HTTP/1.1 "), errc::bad_request, "head");
    check_refused(head_with("", "GET / HTTP/1.1x"), errc::bad_request, "head");
    check_refused("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", errc::bad_request, "request line");
}

BOOST_AUTO_TEST_CASE(absolute_targets) {
    const auto h = accept_head(head_with("", "GET http://a:80/x/y?z=1 HTTP/1.1"));
    BOOST_TEST(h.path == "/x/y");
    BOOST_TEST(h.query == "z=1");
    BOOST_TEST(accept_head(head_with("", "GET https://a HTTP/1.1")).path == "/");
    BOOST_TEST(accept_head(head_with("", "GET http://a/ HTTP/1.1")).path == "/");
}

// The authority of a URI ends at the first of / ? #, so a slash inside the query must not become
// the path.
BOOST_AUTO_TEST_CASE(absolute_target_with_a_query_and_no_path) {
    for (const std::string_view target :
        {"http://a?/admin", "http://a?q", "https://a?x=/v1/echo/k"}) {
        const auto bytes = head_with("", fmt::format("GET {} HTTP/1.1", target));
        const auto p = parse_whole(bytes);
        if (p.outcome.state == parse_state::done) {
            BOOST_TEST(p.head.path == "/", target);
            BOOST_TEST(p.head.query == target.substr(target.find('?') + 1), target);
        } else {
            BOOST_TEST(p.outcome.problem.field == "request line");
        }
    }
}

BOOST_AUTO_TEST_CASE(connection_rules) {
    const auto keeps = [](std::string_view version, std::string_view headers) {
        return accept_head(fmt::format("GET / {}\r\nHost: a\r\n{}\r\n", version, headers))
            .keep_alive;
    };
    BOOST_TEST(keeps("HTTP/1.1", ""));
    BOOST_TEST(!keeps("HTTP/1.1", "Connection: Close, foo\r\n"));
    BOOST_TEST(!keeps("HTTP/1.1", "Connection: foo ,  close\r\n"));
    BOOST_TEST(!keeps("HTTP/1.1", "Connection: keep-alive\r\nConnection: close\r\n"));
    BOOST_TEST(!keeps("HTTP/1.1", "Connection: keep-alive, close\r\n"));
    BOOST_TEST(keeps("HTTP/1.1", "Connection: closed\r\n"));
    BOOST_TEST(keeps("HTTP/1.1", "Connection: ,,\r\n"));
    BOOST_TEST(!keeps("HTTP/1.0", ""));
    BOOST_TEST(keeps("HTTP/1.0", "Connection: Keep-Alive\r\n"));
    BOOST_TEST(!keeps("HTTP/1.0", "Connection: keep-alive, close\r\n"));
    BOOST_TEST(!keeps("HTTP/1.0", "Connection: foo\r\n"));
    // Optional white space is spaces and tabs.
    BOOST_TEST(!keeps("HTTP/1.1", "Connection: foo,\tclose\r\n"));
}

BOOST_AUTO_TEST_CASE(other_headers_that_change_the_answer) {
    check_refused(head_with("Expect: 200-ok\r\n"), errc::bad_request, "Expect");
    check_refused(head_with("Expect:\r\n"), errc::bad_request, "Expect");
    check_refused(head_with("Content-Encoding: br\r\n"), errc::bad_request, "Content-Encoding");
    check_refused(
        head_with("Content-Encoding: gzip, gzip\r\n"), errc::bad_request, "Content-Encoding");
    check_refused(head_with("Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n"),
        errc::bad_request, "Content-Encoding");
    check_refused(
        head_with("Authorization: a\r\nauthorization: b\r\n"), errc::bad_request, "Authorization");
    check_refused(
        head_with("Authorization:\r\nAuthorization: b\r\n"), errc::bad_request, "Authorization");
    // RFC 9110 10.1.1: an expectation in HTTP/1.0 is ignored.
    BOOST_TEST(!accept_head("PUT / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n").expect_continue);
}

BOOST_AUTO_TEST_CASE(header_count_limit) {
    BOOST_TEST(accept_head(many_headers(64)).header_count == 64u);
    check_refused(many_headers(65), errc::header_too_large, "head");
    BOOST_TEST(info(errc::header_too_large).status == 431);
}

BOOST_AUTO_TEST_CASE(head_size_limit) {
    constexpr size_t limit = 1'024;
    const auto fits = parse_whole(head_of_size(limit), limit);
    BOOST_TEST((fits.outcome.state == parse_state::done));
    BOOST_TEST(fits.outcome.consumed == limit);
    const auto body_behind = parse_whole(head_of_size(limit) + std::string(5'000, 'b'), limit);
    BOOST_TEST((body_behind.outcome.state == parse_state::done));
    const auto too_long = head_of_size(limit + 1);
    for (const size_t seen : {limit, limit + 1}) {
        const auto p = parse_whole(std::string_view(too_long).substr(0, seen), limit);
        BOOST_TEST_REQUIRE((p.outcome.state == parse_state::failed), seen);
        BOOST_TEST((p.outcome.problem.code == errc::header_too_large));
    }
    BOOST_TEST((parse_whole(std::string_view(too_long).substr(0, limit - 1), limit).outcome.state
                == parse_state::need_more));
    for (size_t cut = 1; cut <= limit; ++cut) {
        const auto p = parse_in_pieces(too_long, {cut, too_long.size()}, limit);
        BOOST_TEST((p.outcome.problem.code == errc::header_too_large), cut);
    }
}

BOOST_AUTO_TEST_CASE(percent_decoding) {
    BOOST_TEST(percent_decode("").value() == "");
    BOOST_TEST(percent_decode("a%2Fb%2fc%25").value() == "a/b/c%");
    BOOST_TEST(percent_decode("%ff").value() == "\xff");
    BOOST_TEST(percent_decode("+").value() == "+");
    for (const auto* bad :
        {"%", "%2", "a%", "a%4", "%zz", "%4z", "%z4", "%00", "a%00b", "%+1", "% 1", "%%41"}) {
        BOOST_TEST(!percent_decode(bad).has_value(), bad);
    }
}

BOOST_AUTO_TEST_CASE(every_byte_decodes_to_itself) {
    for (unsigned byte = 1; byte < 256; ++byte) {
        const auto upper = percent_decode(fmt::format("%{:02X}", byte));
        const auto lower = percent_decode(fmt::format("%{:02x}", byte));
        BOOST_TEST(
            (upper && lower && *upper == std::string(1, static_cast<char>(byte)) && upper == lower),
            byte);
    }
}

BOOST_AUTO_TEST_CASE(query_values) {
    BOOST_TEST(query_value("a=1&b=2", "b").value() == "2");
    BOOST_TEST(query_value("a=1&a=2", "a").value() == "1");
    BOOST_TEST(query_value("a", "a").value() == "");
    BOOST_TEST(query_value("a=", "a").value() == "");
    BOOST_TEST(query_value("a=b=c", "a").value() == "b=c");
    BOOST_TEST(query_value("x=&&a=one+two%2B%26", "a").value() == "one two+&");
    BOOST_TEST(!query_value("aa=1&b=2", "a").has_value());
    BOOST_TEST(!query_value("a=%zz", "a").has_value());
    BOOST_TEST(!query_value("", "a").has_value());
    BOOST_TEST(!query_value("A=1", "a").has_value());
}

BOOST_AUTO_TEST_SUITE_END()
