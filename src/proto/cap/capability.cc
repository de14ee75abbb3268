#include "proto/cap/capability.hh"

#include "proto/base/hash.hh"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <macaroons.h>
#include <memory>
#include <sodium.h>

namespace tidepool::cap {

namespace {

constexpr std::string_view location = "tidepool";
constexpr std::string_view id_prefix = "tp1:"; // identifier: tp1:<key id>:<random>

struct macaroon_deleter {
    void operator()(macaroon* m) const noexcept { macaroon_destroy(m); }
    void operator()(macaroon_verifier* v) const noexcept { macaroon_verifier_destroy(v); }
};
using macaroon_ptr = std::unique_ptr<macaroon, macaroon_deleter>;
using verifier_ptr = std::unique_ptr<macaroon_verifier, macaroon_deleter>;

const unsigned char* bytes(std::string_view s) {
    return reinterpret_cast<const unsigned char*>(s.data());
}

std::unexpected<error> unauthorized(std::string_view why) {
    return fail(errc::unauthorized, std::string(why), "Authorization");
}

// One packet of the token's inner form: four hexadecimal digits of length, "name value", a line
// feed.
struct packet {
    std::string_view name;
    std::string_view value;
};

std::optional<packet> take_packet(std::string_view& rest) {
    size_t size = 0;
    const auto digits = rest.substr(0, 4);
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), size, 16);
    if (digits.size() < 4 || parsed.ptr != digits.data() + 4 || size < 6 || size > rest.size()
        || rest[size - 1] != '\n') {
        return std::nullopt;
    }
    const auto body = rest.substr(4, size - 5);
    rest.remove_prefix(size);
    const auto space = body.find(' ');
    if (space == body.npos) {
        return std::nullopt;
    }
    return packet{body.substr(0, space), body.substr(space + 1)};
}

// libmacaroons reads past its buffers when packets are damaged, so it only gets what is whole: a
// location, an identifier, our own caveats, a signature of the right size, and nothing after it.
// Third-party caveats have other packets and are refused here as well; we could not discharge them.
bool well_formed(std::string_view token) {
    std::string inner(token.size(), '\0');
    size_t size = 0;
    const auto padding = token.size() - (token.find_last_not_of('=') + 1);
    if (padding > 2) {
        return false;
    }
    token.remove_suffix(padding);
    if (sodium_base642bin(reinterpret_cast<unsigned char*>(inner.data()), inner.size(),
            token.data(), token.size(), nullptr, &size, nullptr,
            sodium_base64_VARIANT_URLSAFE_NO_PADDING)
        != 0) {
        return false;
    }
    std::string_view rest(inner.data(), size);
    auto first = take_packet(rest);
    auto next = first ? take_packet(rest) : std::nullopt;
    if (!next || first->name != "location" || next->name != "identifier") {
        return false;
    }
    for (next = take_packet(rest); next && next->name == "cid"; next = take_packet(rest)) {
    }
    return next && next->name == "signature" && next->value.size() == crypto_auth_hmacsha256_BYTES
           && rest.empty();
}

result<macaroon_ptr> decode(std::string_view token) {
    if (token.empty() || token.size() > token_max_bytes || !well_formed(token)) {
        return unauthorized("no valid capability");
    }
    macaroon_returncode code = MACAROON_SUCCESS;
    macaroon_ptr m(macaroon_deserialize(std::string(token).c_str(), &code));
    if (!m || macaroon_validate(m.get()) != 0) {
        return unauthorized("no valid capability");
    }
    return m;
}

result<std::string> encode(const macaroon* m) {
    std::string out(macaroon_serialize_size_hint(m), '\0');
    macaroon_returncode code = MACAROON_SUCCESS;
    if (macaroon_serialize(m, out.data(), out.size(), &code) < 0) {
        return fail(errc::internal, "the capability cannot be written");
    }
    out.resize(std::char_traits<char>::length(out.c_str()));
    if (out.size() > token_max_bytes) {
        return fail(errc::bad_request,
            fmt::format("the capability is longer than {} bytes", token_max_bytes), "caveat");
    }
    return out;
}

std::string_view identifier(const macaroon* m) {
    const unsigned char* data = nullptr;
    size_t size = 0;
    macaroon_identifier(m, &data, &size);
    return {reinterpret_cast<const char*>(data), size};
}

std::optional<std::string_view> key_id(const macaroon* m) {
    auto id = identifier(m);
    if (!id.starts_with(id_prefix)) {
        return std::nullopt;
    }
    id.remove_prefix(id_prefix.size());
    return id.substr(0, id.find(':'));
}

std::optional<uint64_t> number(std::string_view text) {
    uint64_t value = 0;
    const auto* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, value);
    return !text.empty() && parsed.ptr == end && parsed.ec == std::errc{} ? std::optional(value)
                                                                          : std::nullopt;
}

// A prefix of whole path segments: /v1/echo covers /v1/echo/a, not /v1/echoes.
bool covers(std::string_view prefix, std::string_view path) {
    return path.starts_with(prefix)
           && (path.size() == prefix.size() || prefix.ends_with('/') || path[prefix.size()] == '/');
}

bool lists(std::string_view list, std::string_view word) {
    while (!list.empty()) {
        const auto item = list.substr(0, list.find(','));
        if (item == word) {
            return true;
        }
        list.remove_prefix(std::min(list.size(), item.size() + 1));
    }
    return false;
}

// Checks one caveat after the other and collects what the grant must carry.
class checker {
    const request_facts& _facts;

public:
    grant granted;
    std::string denied_by; // the name of the first caveat that does not hold

    explicit checker(const request_facts& facts) : _facts(facts) {}

    bool holds(std::string_view caveat) {
        const auto equals = caveat.find('=');
        const auto name = caveat.substr(0, equals);
        const bool ok = equals != caveat.npos && check(name, caveat.substr(equals + 1));
        if (!ok) {
            denied_by = std::string(name.substr(0, 32));
        }
        return ok;
    }

private:
    bool check(std::string_view name, std::string_view value) {
        if (name == "method") {
            return lists(value, _facts.method);
        }
        if (name == "path") {
            return !value.empty() && covers(value, _facts.path);
        }
        if (name == "audience") {
            return value == _facts.audience;
        }
        if (name == "account") {
            granted.account_prefixes.emplace_back(value);
            return !_facts.account || _facts.account->starts_with(value);
        }
        const auto n = number(value);
        return n && check_number(name, *n);
    }

    bool check_number(std::string_view name, uint64_t n) {
        if (name == "expires") {
            return _facts.now_unix_s < static_cast<int64_t>(std::min<uint64_t>(n, INT64_MAX));
        }
        if (name == "not-before") {
            return _facts.now_unix_s >= static_cast<int64_t>(std::min<uint64_t>(n, INT64_MAX));
        }
        if (name == "body") {
            granted.body_max_bytes = std::min(granted.body_max_bytes.value_or(n), n);
            return _facts.body_bytes <= n;
        }
        if (name == "rate") {
            granted.rate_per_s = std::min(granted.rate_per_s.value_or(n), n);
            return true;
        }
        return false;
    }
};

// Lets every caveat pass and keeps it: whether the token is genuine must be known before what it
// allows.
int collect_caveat(void* list, const unsigned char* predicate, size_t size) {
    static_cast<std::vector<std::string>*>(list)->emplace_back(
        reinterpret_cast<const char*>(predicate), size);
    return 0;
}

result<std::string> encode_with(macaroon_ptr m, const std::vector<std::string>& caveats) {
    for (const auto& caveat : caveats) {
        if (auto problem = caveat_problem(caveat)) {
            return fail(errc::bad_request, *problem, "caveat");
        }
        macaroon_returncode code = MACAROON_SUCCESS;
        m.reset(macaroon_add_first_party_caveat(m.get(), bytes(caveat), caveat.size(), &code));
        if (!m) {
            return fail(errc::bad_request, "the caveat cannot be added", "caveat");
        }
    }
    return encode(m.get());
}

uint64_t hash_of_signature(const macaroon* m) {
    const unsigned char* data = nullptr;
    size_t size = 0;
    macaroon_signature(m, &data, &size);
    return hash64({reinterpret_cast<const char*>(data), size});
}

} // namespace

result<grant> verify(const keyring& keys, std::string_view token, const request_facts& facts) {
    auto m = decode(token);
    if (!m) {
        return std::unexpected(m.error());
    }
    const auto id = key_id(m->get());
    const root_key* key = id ? keys.find(*id) : nullptr;
    if (!key) {
        return unauthorized("unknown key");
    }
    verifier_ptr verifier(macaroon_verifier_create());
    std::vector<std::string> caveats;
    macaroon_returncode code = MACAROON_SUCCESS;
    if (!verifier
        || macaroon_verifier_satisfy_general(verifier.get(), collect_caveat, &caveats, &code)
               != 0) {
        return fail(errc::internal, "the capability cannot be checked");
    }
    if (macaroon_verify(verifier.get(), m->get(), key->data(), key->size(), nullptr, 0, &code)
        != 0) {
        return unauthorized("the capability is not genuine");
    }
    checker check(facts);
    if (!std::ranges::all_of(caveats, [&](const auto& caveat) { return check.holds(caveat); })) {
        return fail(errc::forbidden, fmt::format("caveat {} does not hold", check.denied_by),
            "Authorization");
    }
    check.granted.token_hash = hash_of_signature(m->get());
    return std::move(check.granted);
}

result<std::string> mint(
    const keyring& keys, std::string_view id, const std::vector<std::string>& caveats) {
    const root_key* key = keys.find(id);
    if (!key) {
        return fail(errc::not_found, "no key of this id", "key");
    }
    std::array<unsigned char, 8> random{};
    randombytes_buf(random.data(), random.size());
    std::string nonce(2 * random.size() + 1, '\0');
    sodium_bin2hex(nonce.data(), nonce.size(), random.data(), random.size());
    nonce.pop_back();
    const auto name = fmt::format("{}{}:{}", id_prefix, id, nonce);
    macaroon_returncode code = MACAROON_SUCCESS;
    macaroon_ptr m(macaroon_create(bytes(location), location.size(), key->data(), key->size(),
        bytes(name), name.size(), &code));
    if (!m) {
        return fail(errc::internal, "the capability cannot be made");
    }
    return encode_with(std::move(m), caveats);
}

result<std::string> attenuate(std::string_view token, const std::vector<std::string>& caveats) {
    auto m = decode(token);
    if (!m) {
        return std::unexpected(m.error());
    }
    return encode_with(std::move(*m), caveats);
}

result<token_info> inspect(std::string_view token) {
    auto m = decode(token);
    if (!m) {
        return std::unexpected(m.error());
    }
    token_info out{std::string(key_id(m->get()).value_or("?")), {}};
    std::string text(macaroon_inspect_size_hint(m->get()), '\0');
    macaroon_returncode code = MACAROON_SUCCESS;
    if (macaroon_inspect(m->get(), text.data(), text.size(), &code) < 0) {
        return fail(errc::internal, "the capability cannot be shown");
    }
    std::string_view rest(text.c_str());
    while (!rest.empty()) {
        const auto line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        if (line.starts_with("cid ")) {
            out.caveats.emplace_back(line.substr(4));
        }
    }
    return out;
}

std::optional<std::string> caveat_problem(std::string_view caveat) {
    const auto equals = caveat.find('=');
    const auto name = caveat.substr(0, equals);
    const auto value = equals == caveat.npos ? std::string_view() : caveat.substr(equals + 1);
    constexpr std::array<std::string_view, 8> names{
        "expires", "not-before", "audience", "method", "path", "account", "body", "rate"};
    if (std::ranges::find(names, name) == names.end() || value.empty()) {
        return fmt::format("\"{}\": needs name=value with a name of {}", caveat.substr(0, 64),
            fmt::join(names, ", "));
    }
    if (std::ranges::any_of(value, [](char c) { return static_cast<uint8_t>(c) < 0x20; })) {
        return fmt::format("{}: a control character", name);
    }
    const bool numeric =
        name == "expires" || name == "not-before" || name == "body" || name == "rate";
    if (numeric && !number(value)) {
        return fmt::format("{}: must be a whole number", name);
    }
    if (name == "path" && !value.starts_with('/')) {
        return "path: must begin with /";
    }
    return std::nullopt;
}

} // namespace tidepool::cap
