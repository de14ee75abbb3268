#include "proto/http/response.hh"

#include "proto/base/json_out.hh"

#include <boost/test/unit_test.hpp>
#include <set>
#include <simdjson.h>

using namespace tidepool;
using namespace tidepool::http;

namespace {

std::string written(const response& r, const answer_frame& frame) {
    std::string out;
    append_response(out, r, frame);
    return out;
}

constexpr std::string_view date = "Date: x\r\n";

} // namespace

BOOST_AUTO_TEST_SUITE(responses)

BOOST_AUTO_TEST_CASE(golden_answers) {
    const response ok{.body = "{}"};
    BOOST_TEST(written(ok, {date, true, false})
               == "HTTP/1.1 200 OK\r\nDate: x\r\nContent-Type: application/json\r\nContent-Length: "
                  "2\r\n\r\n{}");
    const response gone{.status = 404,
        .content_type = text_type,
        .body = "no",
        .headers = "X: 1\r\n",
        .close = true};
    BOOST_TEST(written(gone, {date, false, false})
               == "HTTP/1.1 404 Not Found\r\nDate: x\r\nContent-Type: text/plain; "
                  "charset=utf-8\r\nContent-Length: 2\r\n"
                  "Connection: close\r\nX: 1\r\n\r\nno");
}

BOOST_AUTO_TEST_CASE(head_gives_the_length_without_the_bytes) {
    const response r{.body = std::string(1'234, 'b')};
    const auto out = written(r, {date, true, true});
    BOOST_TEST(out.find("Content-Length: 1234\r\n") != out.npos);
    BOOST_TEST(out.ends_with("\r\n\r\n"));
}

BOOST_AUTO_TEST_CASE(answers_are_appended) {
    std::string out = "before";
    append_response(out, {}, {date, true, false});
    append_response(out, {}, {date, true, false});
    BOOST_TEST(out.starts_with("beforeHTTP/1.1 200 OK\r\n"));
    BOOST_TEST(out.rfind("HTTP/1.1 200 OK") > out.find("HTTP/1.1 200 OK"));
}

// RFC 9110 8.6 and 6.4.1: 204 has no content, and no Content-Length either.
BOOST_AUTO_TEST_CASE(no_content_has_no_length) {
    const auto out = written({.status = 204}, {date, true, false});
    BOOST_TEST(out.starts_with("HTTP/1.1 204 No Content\r\n"));
    BOOST_TEST(out.find("Content-Length") == out.npos);
    BOOST_TEST(out.ends_with("\r\n\r\n"));
}

BOOST_AUTO_TEST_CASE(stream_head_ends_with_the_connection) {
    std::string out;
    append_stream_head(out, "text/event-stream", date);
    BOOST_TEST(out
               == "HTTP/1.1 200 OK\r\nDate: x\r\nContent-Type: text/event-stream\r\nCache-Control: "
                  "no-store\r\n"
                  "Connection: close\r\n\r\n");
}

BOOST_AUTO_TEST_CASE(every_error_has_an_answer) {
    std::set<std::string_view> names;
    for (size_t i = 0; i < errc_count; ++i) {
        const auto code = static_cast<errc>(i);
        BOOST_TEST_CONTEXT(name(code)) {
            BOOST_TEST(names.insert(name(code)).second);
            const auto r = error_response({code, "", "", {}}, "c1");
            BOOST_TEST(r.status == info(code).status);
            BOOST_TEST(reason(r.status) != "Status");
            simdjson::dom::parser parser;
            const auto body = parser.parse(r.body);
            BOOST_TEST(std::string_view(body["code"]) == name(code));
            BOOST_TEST(std::string_view(body["message"]) == name(code));
            BOOST_TEST(bool(body["retryable"]) == info(code).retryable);
            BOOST_TEST(std::string_view(body["corr_id"]) == "c1");
            BOOST_TEST((body["field"].error() == simdjson::NO_SUCH_FIELD));
            BOOST_TEST((r.headers.find("Retry-After") != r.headers.npos)
                       == (info(code).retry_after_s > 0));
        }
    }
    BOOST_TEST(name(errc::internal) == "internal");
    BOOST_TEST(info(errc::busy).status == 429);
    BOOST_TEST(info(errc::frame_too_large).status == 413);
    BOOST_TEST(info(errc::insufficient_funds).status == 409);
}

BOOST_AUTO_TEST_CASE(error_details) {
    error e{errc::busy, "too \"many\"\n", "key", std::chrono::seconds(7)};
    const auto r = error_response(e, "\xff");
    BOOST_TEST(r.headers == "Retry-After: 7\r\n");
    BOOST_TEST(
        r.body
        == R"({"code":"busy","message":"too \"many\"\n","field":"key","retryable":true,"corr_id":")"
           "\xEF\xBF\xBD\"}");
    BOOST_TEST(error_response({errc::unauthorized, "", "", {}}, "").headers
               == "WWW-Authenticate: Bearer\r\n");
    BOOST_TEST(retry_after({errc::not_ready, "", "", {}}).count() == 5);
    BOOST_TEST(retry_after({errc::bad_request, "", "", {}}).count() == 0);
}

BOOST_AUTO_TEST_CASE(dates) {
    BOOST_TEST(date_line(0) == "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n");
    BOOST_TEST(date_line(784'111'777) == "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    BOOST_TEST(date_line(951'782'400) == "Date: Tue, 29 Feb 2000 00:00:00 GMT\r\n");
    BOOST_TEST(date_line(1'794'787'200) == "Date: Mon, 16 Nov 2026 00:00:00 GMT\r\n");
}

BOOST_AUTO_TEST_SUITE_END()
