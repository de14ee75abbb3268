#include "../seed.hh"
#include "proto/base/hash.hh"
#include "proto/base/json_out.hh"
#include "proto/http/json_in.hh"

#include <boost/test/unit_test.hpp>
#include <limits>
#include <simdjson.h>

using namespace tidepool;
using namespace tidepool::http;

namespace {

struct everything {
    std::string text;
    uint64_t count = 0;
    int64_t offset = 0;
    double ratio = 0;
    bool on = false;
    std::vector<std::string> list;
    std::optional<std::string> note;
    std::optional<uint64_t> limit;
    std::optional<bool> maybe;

    result<void> read(std::string_view body) {
        return parse_json(body, {{"text", &text}, {"count", &count}, {"offset", &offset},
                                    {"ratio", &ratio}, {"on", &on}, {"list", &list},
                                    {"note", &note}, {"limit", &limit}, {"maybe", &maybe}});
    }
};

// One field of its type, and the error that a value for it gives ("" for none).
template <typename T>
std::string error_of(std::string_view value) {
    T target{};
    const auto read = parse_json(fmt::format("{{\"f\":{}}}", value), {{"f", &target}});
    if (read) {
        return "";
    }
    BOOST_TEST((read.error().code == errc::bad_request));
    return read.error().field + ": " + read.error().message;
}

void check_refused(std::string_view body, std::string_view field, std::string_view message) {
    std::string a;
    std::optional<std::string> b;
    const auto read = parse_json(body, {{"a", &a}, {"b", &b}});
    BOOST_TEST_CONTEXT("body: " << body.substr(0, 80)) {
        BOOST_TEST_REQUIRE(!read.has_value());
        BOOST_TEST((read.error().code == errc::bad_request));
        BOOST_TEST(read.error().field == field);
        BOOST_TEST(read.error().message == message);
    }
}

std::string json_quoted(std::string_view text) {
    std::string out;
    append_json_string(out, text);
    return out;
}

bool valid_json(const std::string& text) {
    simdjson::dom::parser parser;
    return parser.parse(text).error() == simdjson::SUCCESS;
}

} // namespace

BOOST_AUTO_TEST_SUITE(json_in)

BOOST_AUTO_TEST_CASE(each_type) {
    everything e;
    const auto read =
        e.read(R"( {"text":"h\u00e9\n","count":18446744073709551615,"offset":-9223372036854775808,
        "ratio":2.5,"on":true,"list":["a","","b"],"note":"n","limit":3,"maybe":false} )");
    BOOST_TEST_REQUIRE(read.has_value(), read.error().field << read.error().message);
    BOOST_TEST(e.text == "h\xC3\xA9\n");
    BOOST_TEST(e.count == std::numeric_limits<uint64_t>::max());
    BOOST_TEST(e.offset == std::numeric_limits<int64_t>::min());
    BOOST_TEST(e.ratio == 2.5);
    BOOST_TEST(e.on);
    BOOST_TEST((e.list == std::vector<std::string>{"a", "", "b"}));
    BOOST_TEST(e.note.value() == "n");
    BOOST_TEST(e.limit.value() == 3u);
    BOOST_TEST(e.maybe.value() == false);
}

BOOST_AUTO_TEST_CASE(wrong_types) {
    BOOST_TEST(error_of<std::string>("1") == "f: must be text");
    BOOST_TEST(error_of<std::string>("null") == "f: must be text");
    for (const auto* bad :
        {"-1", "1.0", "1e3", "\"1\"", "true", "null", "[1]", "{}", "18446744073709551616"}) {
        const auto problem = error_of<uint64_t>(bad);
        // A number too large for 64 bits is no valid JSON to simdjson; it is refused either way.
        BOOST_TEST((problem == "f: must be a whole number, not negative"
                       || problem == "body: no valid JSON"),
            bad);
    }
    for (const auto* bad : {"9223372036854775808", "0.5", "\"1\"", "null", "false"}) {
        BOOST_TEST(error_of<int64_t>(bad) == "f: must be a whole number", bad);
    }
    BOOST_TEST(error_of<double>("\"1\"") == "f: must be a number");
    BOOST_TEST(error_of<double>("7") == "");
    for (const auto* bad : {"0", "1", "\"true\"", "null", "[]"}) {
        BOOST_TEST(error_of<bool>(bad) == "f: must be true or false", bad);
    }
    for (const auto* bad : {"\"a\"", "[1]", "[\"a\",null]", "[[\"a\"]]", "{}", "null"}) {
        BOOST_TEST(error_of<std::vector<std::string>>(bad) == "f: must be a list of texts", bad);
    }
    BOOST_TEST(error_of<std::optional<std::string>>("1") == "f: must be text or null");
    BOOST_TEST(error_of<std::optional<uint64_t>>("-1")
               == "f: must be a whole number, not negative, or null");
    BOOST_TEST(error_of<std::optional<bool>>("0") == "f: must be true, false or null");
}

BOOST_AUTO_TEST_CASE(null_and_absent_are_the_same_for_optionals) {
    std::optional<std::string> note = "old";
    std::optional<uint64_t> limit = 1;
    BOOST_TEST(parse_json(R"({"note":null,"limit":null})", {{"note", &note}, {"limit", &limit}})
            .has_value());
    BOOST_TEST(!note.has_value());
    BOOST_TEST(!limit.has_value());
    BOOST_TEST(parse_json("{}", {{"note", &note}, {"limit", &limit}}).has_value());
}

BOOST_AUTO_TEST_CASE(names) {
    check_refused(R"({"a":"x","c":1})", "c", "no such field");
    check_refused(R"({"a":"x","A":"y"})", "A", "no such field");
    check_refused(R"({"a":"x","a":"x"})", "a", "given twice");
    check_refused(R"({"a":"x","\u0061":"x"})", "a", "given twice");
    check_refused(R"({"a":"x","b":null,"b":null})", "b", "given twice");
    check_refused(R"({"b":"x"})", "a", "is missing");
    check_refused("{}", "a", "is missing");
    check_refused(fmt::format("{{\"{}\":1}}", std::string(1'000, 'k')), std::string(64, 'k'),
        "no such field");
}

BOOST_AUTO_TEST_CASE(no_json_or_no_object) {
    for (const auto* body : {"", " ", "{", "}", "{\"a\":}", "{\"a\":\"x\"", "{\"a\":\"x\",}",
             "{a:\"x\"}", "{'a':'x'}", "{\"a\":\"x\"}x", "{\"a\":\"x\"} {}", "{\"a\":\"x\"},",
             "{\"a\":\"x\"}]", "{\"a\":\"\n\"}", "{\"a\":\"\\x\"}", "{\"a\":\"\\ud800\"}",
             "{\"a\":NaN}", "{\"a\":01}", "\xEF\xBB\xBF{\"a\":\"x\"}", "//c\n{\"a\":\"x\"}",
             "{\"a\":\"\xff\"}", "{\"a\":\"\xC0\x80\"}", "{\"a\":\"\xED\xA0\x80\"}",
             "{\"a\":\"\xF4\x90\x80\x80\"}", "{\"a\":\"\xC3\"}"}) {
        check_refused(body, "body", "no valid JSON");
    }
    check_refused(std::string_view("{\"a\":\"x\"}\0", 10), "body", "no valid JSON");
    check_refused(std::string_view(), "body", "no valid JSON");
    for (const auto* body : {"[]", "\"a\"", "1", "null", "true", "[{\"a\":\"x\"}]"}) {
        check_refused(body, "body", "must be a JSON object");
    }
}

BOOST_AUTO_TEST_CASE(deep_nesting_is_refused) {
    for (const size_t depth : {size_t(2'000), size_t(500'000)}) {
        const auto list = "{\"a\":" + std::string(depth, '[') + std::string(depth, ']') + "}";
        check_refused(list, "body", "no valid JSON");
        check_refused("{\"a\":" + std::string(depth, '['), "body", "no valid JSON");
    }
    check_refused("{\"a\":[[[[\"x\"]]]]}", "a", "must be text");
}

BOOST_AUTO_TEST_CASE(a_refusal_leaves_nothing_behind_for_the_next) {
    check_refused("{\"a\":\"" + std::string(100'000, 'x'), "body", "no valid JSON");
    std::string a;
    BOOST_TEST(parse_json("{\"a\":\"y\"}", {{"a", &a}}).has_value());
    BOOST_TEST(a == "y");
}

BOOST_AUTO_TEST_CASE(sixty_four_fields_and_no_more) {
    std::vector<std::string> names;
    std::vector<uint64_t> values(65);
    std::vector<json_field> fields;
    json_object body;
    for (size_t i = 0; i < 65; ++i) {
        names.push_back(fmt::format("f{}", i));
    }
    for (size_t i = 0; i < 64; ++i) {
        fields.push_back({names[i], &values[i]});
        body.add(names[i], i);
    }
    const auto read = parse_json(std::move(body).str(), fields);
    BOOST_TEST_REQUIRE(read.has_value());
    BOOST_TEST(values[0] == 0u);
    BOOST_TEST(values[63] == 63u);
    fields.push_back({names[64], &values[64]});
    BOOST_TEST((parse_json("{}", fields).error().code == errc::internal));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(json_out)

BOOST_AUTO_TEST_CASE(golden_strings) {
    BOOST_TEST(json_quoted("") == "\"\"");
    BOOST_TEST(json_quoted("a\"b\\c/") == R"("a\"b\\c/")");
    BOOST_TEST(json_quoted(std::string_view("\n\r\t\0\x1f", 5)) == R"("\n\r\t\u0000\u001f")");
    BOOST_TEST(json_quoted("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x90\xA0")
               == "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x90\xA0\"");
    const std::string mark = "\xEF\xBF\xBD";
    BOOST_TEST(json_quoted("\xff") == "\"" + mark + "\"");
    BOOST_TEST(json_quoted("\xC3") == "\"" + mark + "\"");
    BOOST_TEST(json_quoted("\xC0\x80") == "\"" + mark + mark + "\"");
    BOOST_TEST(json_quoted("\xED\xA0\x80").find('\xED') == std::string::npos);
    BOOST_TEST(json_quoted("\xE2\x82\"") == "\"" + mark + mark + "\\\"\"");
}

BOOST_AUTO_TEST_CASE(objects_and_lists) {
    BOOST_TEST(json_object().str() == "{}");
    BOOST_TEST(json_array().str() == "[]");
    const std::string owned = "o";
    json_object object;
    object.add("a", 1)
        .add("b", "x")
        .add("c", true)
        .add("d", owned)
        .add("e", raw_json{"[1]"})
        .add("f", -2.5);
    object.add("\"", std::numeric_limits<uint64_t>::max()).add("g", uint8_t(65));
    BOOST_TEST(
        std::move(object).str()
        == R"({"a":1,"b":"x","c":true,"d":"o","e":[1],"f":-2.5,"\"":18446744073709551615,"g":65})");
    json_array list;
    list.add(1).add("x").add(false).add(std::string_view("y"));
    BOOST_TEST(std::move(list).str() == R"([1,"x",false,"y"])");
}

BOOST_AUTO_TEST_CASE(numbers_are_always_json) {
    for (const double value :
        {0.0, -0.0, 1e300, 5e-324, 0.1, std::numeric_limits<double>::infinity(),
            -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
        json_array list;
        const auto text = std::move(list.add(value)).str();
        BOOST_TEST(valid_json(text), text);
    }
}

BOOST_AUTO_TEST_CASE(random_bytes_parse_back) {
    auto random = test::random_for("json_out/random_bytes_parse_back");
    simdjson::dom::parser parser;
    for (int round = 0; round < 3'000; ++round) {
        const auto bytes = test::random_bytes(random, test::draw(random, 0, 60));
        std::string_view back;
        const auto text = json_quoted(bytes);
        BOOST_TEST_REQUIRE((parser.parse(text).get_string().get(back) == simdjson::SUCCESS), text);
        if (simdjson::validate_utf8(bytes)) {
            BOOST_TEST((back == bytes));
        }
    }
}

BOOST_AUTO_TEST_CASE(every_short_ascii_parses_back_exactly) {
    simdjson::dom::parser parser;
    for (int c = 0; c < 128; ++c) {
        const std::string text{'a', static_cast<char>(c), 'b'};
        std::string_view back;
        BOOST_TEST_REQUIRE(
            (parser.parse(json_quoted(text)).get_string().get(back) == simdjson::SUCCESS), c);
        BOOST_TEST((back == text), c);
    }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(hashing)

BOOST_AUTO_TEST_CASE(seed_length_and_bytes_matter) {
    BOOST_TEST(hash64("key") == hash64(std::string("key")));
    BOOST_TEST(hash64("key") != hash64("kez"));
    BOOST_TEST(hash64("key") != hash64("key", 1));
    BOOST_TEST(hash64("") != hash64(std::string_view("\0", 1)));
    BOOST_TEST(hash64(std::string_view()) == hash64(""));
    BOOST_TEST(hash64("12345678") != hash64("1234567"));
}

BOOST_AUTO_TEST_CASE(keys_spread_over_cores) {
    constexpr size_t cores = 8, keys = 80'000;
    std::vector<size_t> on_core(cores);
    for (size_t i = 0; i < keys; ++i) {
        ++on_core[hash64(fmt::format("user/{}", i)) % cores];
    }
    for (const size_t count : on_core) {
        BOOST_TEST(count > keys / cores * 95 / 100);
        BOOST_TEST(count < keys / cores * 105 / 100);
    }
}

BOOST_AUTO_TEST_SUITE_END()
