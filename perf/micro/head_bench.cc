// Our request-head parser against the one that Seastar generates, on a short request (what wrk
// sends) and on one like a browser's.
#include "proto/http/head.hh"
#include "side_by_side.hh"

#include <chrono>
#include <seastar/core/temporary_buffer.hh>
#include <seastar/http/request_parser.hh>
#include <string>

namespace {

using namespace tidepool;

constexpr int rounds = 9;
constexpr int parses = 200'000;

const std::string short_head = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";
const std::string browser_head =
    "GET /v1/echo/greeting?fresh=true HTTP/1.1\r\nHost: node.example:8080\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n"
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
    "Accept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate, br\r\n"
    "Connection: keep-alive\r\nCookie: session=0123456789abcdef; theme=dark\r\n"
    "Upgrade-Insecure-Requests: 1\r\nSec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\n\r\n";

template <typename Parse>
double ns_a_parse(const Parse& parse) {
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < parses; ++i) {
        parse();
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - began;
    return took.count() / parses;
}

void require(bool ok) {
    if (!ok) {
        throw std::runtime_error("a parser refused the request");
    }
}

void compare(const std::string& head, std::string_view name) {
    std::vector<double> ours;
    std::vector<double> theirs;
    http::request_head parsed;
    seastar::http_request_parser parser;
    for (int i = 0; i < rounds; ++i) {
        ours.push_back(ns_a_parse([&] {
            size_t scanned = 0;
            const auto done = http::parse_head(head, 16'384, scanned, parsed);
            require(done.state == http::parse_state::done);
        }));
        theirs.push_back(ns_a_parse([&] {
            parser.init();
            seastar::temporary_buffer<char> bytes(const_cast<char*>(head.data()), head.size(), {});
            const auto rest = parser(std::move(bytes)).get();
            require(rest.has_value() && !parser.failed());
            parser.get_parsed_request().reset();
        }));
    }
    perf::print_ratio(name, "ours", perf::median(ours), "seastar", perf::median(theirs), "ns/head");
}

} // namespace

int main() {
    compare(short_head, "http_head_short_vs_seastar_parser");
    compare(browser_head, "http_head_browser_vs_seastar_parser");
}
