#include "proto/http/head.hh"

#include <algorithm>
#include <charconv>
#include <utility>

namespace tidepool::http {

namespace {

enum char_class : uint8_t { token_char = 1, value_char = 2, target_char = 4 };

constexpr std::array<uint8_t, 256> make_classes() {
    std::array<uint8_t, 256> t{};
    for (unsigned c = 0; c < 256; ++c) {
        const bool alnum =
            (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (alnum
            || (c < 128
                && std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c))
                       != std::string_view::npos)) {
            t[c] |= token_char;
        }
        if (c == '\t' || (c >= 0x20 && c != 0x7f)) {
            t[c] |= value_char;
        }
        if (c > 0x20 && c < 0x7f) {
            t[c] |= target_char;
        }
    }
    return t;
}

constexpr auto classes = make_classes();

bool is(char c, char_class k) noexcept {
    return (classes[static_cast<uint8_t>(c)] & k) != 0;
}

method method_of(std::string_view word) noexcept {
    switch (word.size()) {
    case 3:
        return word == "GET" ? method::get : word == "PUT" ? method::put : method::other;
    case 4:
        return word == "POST" ? method::post : word == "HEAD" ? method::head : method::other;
    case 5:
        return word == "PATCH" ? method::patch : method::other;
    case 6:
        return word == "DELETE" ? method::del : method::other;
    case 7:
        return word == "OPTIONS" ? method::options : method::other;
    default:
        return method::other;
    }
}

// One pass over the bytes. Any read past the end means "need more"; `_failed` holds the first
// refusal.
class parser {
    std::string_view _in;
    size_t _at = 0;
    request_head& _out;
    std::string_view _failed;
    std::string_view _field;
    errc _code = errc::bad_request;
    bool _saw_host = false;
    bool _saw_coding = false;
    bool _saw_authorization = false;
    bool _close = false;
    bool _keep = false;

public:
    parser(std::string_view in, request_head& out) : _in(in), _out(out) {}

    head_outcome run() {
        if (!skip_one_empty_line() || !request_line() || !header_lines() || !check_together()) {
            if (_failed.empty()) {
                return {};
            }
            return {
                parse_state::failed, 0, error{_code, std::string(_failed), std::string(_field)}};
        }
        return {parse_state::done, _at, {}};
    }

private:
    bool refuse(std::string_view why, std::string_view field = "request line",
        errc code = errc::bad_request) {
        _failed = why;
        _field = field;
        _code = code;
        return false;
    }

    // RFC 9112 2.2: one empty line before a request may be ignored.
    bool skip_one_empty_line() { return !_in.starts_with('\r') || line_end(); }

    bool line_end() {
        if (_at + 1 >= _in.size()) {
            return _at < _in.size() && _in[_at] != '\r' ? refuse("a line must end in CR LF", "head")
                                                        : false;
        }
        if (_in[_at] != '\r' || _in[_at + 1] != '\n') {
            return refuse("a line must end in CR LF", "head");
        }
        _at += 2;
        return true;
    }

    std::string_view run_of(char_class k) {
        const size_t start = _at;
        while (_at < _in.size() && is(_in[_at], k)) {
            ++_at;
        }
        return _in.substr(start, _at - start);
    }

    bool request_line() {
        const auto word = run_of(token_char);
        if (_at >= _in.size()) {
            return false;
        }
        if (word.empty() || _in[_at] != ' ') {
            return refuse("no valid method");
        }
        _out.verb = method_of(word);
        ++_at;
        const auto target = run_of(target_char);
        if (_at >= _in.size()) {
            return false;
        }
        if (target.empty() || _in[_at] != ' ') {
            return refuse("no valid target");
        }
        ++_at;
        if (!split_target(target)) {
            return false;
        }
        const auto version = _in.substr(_at, 8);
        if (version.size() < 8) {
            return std::string_view("HTTP/1.1").starts_with(version)
                           || std::string_view("HTTP/1.0").starts_with(version)
                       ? false
                       : refuse("no valid version");
        }
        if (version != "HTTP/1.1" && version != "HTTP/1.0") {
            return refuse("only HTTP/1.1 and HTTP/1.0 are spoken here");
        }
        _out.http_1_0 = version.back() == '0';
        _at += 8;
        return line_end();
    }

    bool split_target(std::string_view target) {
        for (const std::string_view scheme : {"http://", "https://"}) {
            if (target.starts_with(scheme)) {
                target.remove_prefix(scheme.size());
                target = target.substr(std::min(target.find_first_of("/?"), target.size()));
                // The authority ends at the first of / and ?; without a path it stands for the
                // root.
                if (!target.starts_with('/')) {
                    _out.path = "/";
                    _out.query = target.substr(std::min<size_t>(1, target.size()));
                    return true;
                }
            }
        }
        if (target[0] != '/' && !(target == "*" && _out.verb == method::options)) {
            return refuse("the target must be a path");
        }
        if (target.find('#') != target.npos) {
            return refuse("the target holds a fragment");
        }
        const auto mark = target.find('?');
        _out.path = target.substr(0, mark);
        _out.query = mark == target.npos ? std::string_view() : target.substr(mark + 1);
        return true;
    }

    bool header_lines() {
        while (true) {
            if (_at >= _in.size()) {
                return false;
            }
            if (_in[_at] == '\r') {
                return line_end();
            }
            if (!header_line()) {
                return false;
            }
        }
    }

    bool header_line() {
        const auto field = run_of(token_char);
        if (_at >= _in.size()) {
            return false;
        }
        if (field.empty() || _in[_at] != ':') {
            return refuse("a header needs a name, then a colon", "head");
        }
        ++_at;
        while (_at < _in.size() && (_in[_at] == ' ' || _in[_at] == '\t')) {
            ++_at;
        }
        auto value = run_of(value_char);
        if (_at >= _in.size() || !line_end()) {
            return false;
        }
        while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) {
            value.remove_suffix(1);
        }
        if (_out.header_count == request_head::headers_max) {
            return refuse("more than 64 headers", "head", errc::header_too_large);
        }
        _out.header_slots[_out.header_count++] = {field, value};
        return note(field, value);
    }

    // Headers that change how the message is framed or answered.
    bool note(std::string_view field, std::string_view value) {
        switch (field.size()) {
        case 4:
            return !equals_ignoring_case(field, "host") || note_host(value);
        case 6:
            return !equals_ignoring_case(field, "expect") || note_expect(value);
        case 10:
            return !equals_ignoring_case(field, "connection") || note_connection(value);
        case 13:
            if (equals_ignoring_case(field, "authorization")) {
                if (std::exchange(_saw_authorization, true)) {
                    return refuse("given twice", "Authorization");
                }
                _out.authorization = value;
            }
            return true;
        case 14:
            return !equals_ignoring_case(field, "content-length") || note_length(value);
        case 16:
            return !equals_ignoring_case(field, "content-encoding") || note_coding(value);
        case 17:
            return !equals_ignoring_case(field, "transfer-encoding") || note_transfer(value);
        default:
            return true;
        }
    }

    bool note_host(std::string_view value) {
        if (_saw_host) {
            return refuse("given twice", "Host");
        }
        if (value.find_first_of(" \t,/@") != value.npos) {
            return refuse("no valid host", "Host");
        }
        _saw_host = true;
        _out.host = value;
        return true;
    }

    bool note_expect(std::string_view value) {
        if (!equals_ignoring_case(value, "100-continue")) {
            return refuse("only 100-continue can be expected", "Expect");
        }
        _out.expect_continue = true;
        return true;
    }

    bool note_connection(std::string_view value) {
        while (!value.empty()) {
            auto word = value.substr(0, value.find(','));
            value.remove_prefix(std::min(value.size(), word.size() + 1));
            word = word.substr(std::min(word.find_first_not_of(" \t"), word.size()));
            word = word.substr(0, word.find_last_not_of(" \t") + 1);
            _close |= equals_ignoring_case(word, "close");
            _keep |= equals_ignoring_case(word, "keep-alive");
        }
        return true;
    }

    bool note_length(std::string_view value) {
        if (_out.content_length) {
            return refuse("given twice", "Content-Length");
        }
        uint64_t length = 0;
        const auto* end = value.data() + value.size();
        const bool digits =
            !value.empty() && value.size() <= 18 && value[0] >= '0' && value[0] <= '9';
        if (!digits || std::from_chars(value.data(), end, length).ptr != end) {
            return refuse("no plain number", "Content-Length");
        }
        _out.content_length = length;
        return true;
    }

    bool note_coding(std::string_view value) {
        if (std::exchange(_saw_coding, true)) {
            return refuse("given twice", "Content-Encoding");
        }
        if (equals_ignoring_case(value, "gzip")) {
            _out.content_coding = coding::gzip;
        } else if (equals_ignoring_case(value, "deflate")) {
            _out.content_coding = coding::deflate;
        } else if (!equals_ignoring_case(value, "identity")) {
            return refuse("only gzip, deflate and identity are understood", "Content-Encoding");
        }
        return true;
    }

    bool note_transfer(std::string_view value) {
        if (_out.chunked) {
            return refuse("given twice", "Transfer-Encoding");
        }
        if (!equals_ignoring_case(value, "chunked")) {
            return refuse("only chunked is understood", "Transfer-Encoding", errc::unsupported);
        }
        _out.chunked = true;
        return true;
    }

    bool check_together() {
        if (_out.chunked && _out.content_length) {
            return refuse("together with Content-Length", "Transfer-Encoding");
        }
        if (_out.chunked && _out.http_1_0) {
            return refuse("not in HTTP/1.0", "Transfer-Encoding");
        }
        if (!_out.http_1_0 && !_saw_host) {
            return refuse("is missing", "Host");
        }
        _out.expect_continue &= !_out.http_1_0; // RFC 9110 10.1.1
        _out.keep_alive = !_close && (!_out.http_1_0 || _keep);
        return true;
    }
};

bool end_is_there(std::string_view bytes, size_t& scanned) {
    const auto from = scanned > 3 ? scanned - 3 : 0;
    const bool found = bytes.find("\r\n\r\n", from) != bytes.npos;
    scanned = bytes.size();
    return found;
}

int hex_digit(char c) noexcept {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    const char lower = static_cast<char>(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

} // namespace

std::string_view name(method m) noexcept {
    constexpr std::array<std::string_view, 8> names{
        "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "OTHER"};
    return names[static_cast<size_t>(m)];
}

bool equals_ignoring_case(std::string_view a, std::string_view b) noexcept {
    auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; };
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [&](char x, char y) {
        return lower(x) == lower(y);
    });
}

std::string_view request_head::find(std::string_view wanted) const noexcept {
    for (const auto& h : headers()) {
        if (equals_ignoring_case(h.name, wanted)) {
            return h.value;
        }
    }
    return {};
}

head_outcome parse_head(
    std::string_view bytes, size_t max_bytes, size_t& scanned, request_head& out) {
    // The first look parses at once; only a head that came in pieces is searched for its end before
    // the next try.
    const bool first_look = scanned == 0;
    head_outcome outcome;
    if (!bytes.empty() && (first_look || end_is_there(bytes, scanned))) {
        out.verb = method::other;
        out.http_1_0 = out.chunked = out.expect_continue = false;
        out.content_coding = coding::identity;
        out.content_length.reset();
        out.host = out.authorization = {};
        out.header_count = 0;
        outcome = parser(bytes, out).run();
        scanned = bytes.size();
    }
    const bool too_long =
        outcome.state == parse_state::done
            ? outcome.consumed > max_bytes
            : outcome.state == parse_state::need_more && bytes.size() >= max_bytes;
    if (too_long) {
        return {parse_state::failed, 0,
            error{errc::header_too_large, "request line and headers are too long", "head"}};
    }
    return outcome;
}

std::optional<std::string> percent_decode(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            out += text[i];
            continue;
        }
        const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
        const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
        if (high < 0 || low < 0 || (high == 0 && low == 0)) {
            return std::nullopt;
        }
        out += static_cast<char>(high * 16 + low);
        i += 2;
    }
    return out;
}

std::optional<std::string> query_value(std::string_view query, std::string_view wanted) {
    while (!query.empty()) {
        const auto pair = query.substr(0, query.find('&'));
        query.remove_prefix(std::min(query.size(), pair.size() + 1));
        const auto equals = pair.find('=');
        if (pair.substr(0, equals) == wanted) {
            std::string value(equals == pair.npos ? std::string_view() : pair.substr(equals + 1));
            std::ranges::replace(value, '+', ' ');
            return percent_decode(value);
        }
    }
    return std::nullopt;
}

} // namespace tidepool::http
