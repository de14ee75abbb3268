// `tidepoolctl cap`: root keys and the capabilities made from them. Nothing here talks to a node.
#include "commands.hh"

#include "proto/base/json_out.hh"
#include "proto/cap/capability.hh"
#include "proto/cap/keyring.hh"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace tidepool::ctl {

namespace {

constexpr size_t keys_file_max_bytes = 64 * 1024; // some 600 keys
constexpr int64_t expires_max_s = 10LL * 366 * 24 * 3600;

class file_descriptor {
    int _fd;

public:
    explicit file_descriptor(int fd) : _fd(fd) {}
    file_descriptor(const file_descriptor&) = delete;
    file_descriptor& operator=(const file_descriptor&) = delete;
    ~file_descriptor() {
        if (_fd >= 0) {
            ::close(_fd);
        }
    }
    int get() const noexcept { return _fd; }
};

// At most `max_bytes`; more is an error, as is a read error.
outcome<std::string> read_all(int fd, size_t max_bytes, std::string_view what) {
    std::string out(max_bytes + 1, '\0');
    size_t size = 0;
    while (size < out.size()) {
        const auto got = ::read(fd, out.data() + size, out.size() - size);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return fail(exit_code::bad_input,
                fmt::format("{} cannot be read: {}", what, std::strerror(errno)));
        }
        if (got == 0) {
            out.resize(size);
            return out;
        }
        size += static_cast<size_t>(got);
    }
    return fail(exit_code::bad_input, fmt::format("{} is longer than {} bytes", what, max_bytes));
}

outcome<cap::keyring> read_keys(const std::string& path) {
    // Not blocking: opening a pipe must not wait for somebody to write to it.
    const file_descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.get() < 0) {
        return fail(exit_code::bad_input, fmt::format("{}: {}", path, std::strerror(errno)));
    }
    // Of the open file, not of the path: nobody can put another file in its place meanwhile.
    struct stat about{};
    if (::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode)) {
        return fail(exit_code::bad_input, fmt::format("{}: is no regular file", path));
    }
    if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        return fail(exit_code::bad_input,
            fmt::format("{}: others than its owner may use it (mode {:04o}); chmod 600 it", path,
                about.st_mode & 07777));
    }
    auto text = read_all(file.get(), keys_file_max_bytes, path);
    if (!text) {
        return std::unexpected(text.error());
    }
    auto keys = cap::keyring::parse(*text);
    sodium_memzero(text->data(), text->size());
    if (!keys) {
        return fail(exit_code::bad_input, fmt::format("{}: {}", path, keys.error().message));
    }
    return std::move(*keys);
}

outcome<std::string> read_token(const std::string& operand) {
    auto token = outcome<std::string>(operand);
    if (operand == "-") {
        // Two more: a token at its limit may end with a line break.
        token = read_all(STDIN_FILENO, cap::token_max_bytes + 2, "the token");
    }
    while (token && (token->ends_with('\n') || token->ends_with('\r'))) {
        token->pop_back();
    }
    return token;
}

std::optional<int64_t> seconds_of_unit(char unit) {
    switch (unit) {
    case 's':
        return 1;
    case 'm':
        return 60;
    case 'h':
        return 3600;
    case 'd':
        return 24 * 3600;
    default:
        return std::nullopt;
    }
}

// "90s", "30m", "1h", "7d".
std::optional<int64_t> duration_s(std::string_view text) {
    const auto unit_s = text.empty() ? std::nullopt : seconds_of_unit(text.back());
    if (!unit_s) {
        return std::nullopt;
    }
    int64_t count = 0;
    const auto* end = text.data() + text.size() - 1;
    const auto parsed = std::from_chars(text.data(), end, count);
    if (parsed.ec != std::errc{} || parsed.ptr != end || count < 1
        || count > expires_max_s / *unit_s) {
        return std::nullopt;
    }
    return count * *unit_s;
}

// Those of --caveat, checked for form, and the one that --expires-in stands for.
outcome<std::vector<std::string>> caveats_of(const arguments& args) {
    auto caveats = args.values("--caveat");
    for (const auto& caveat : caveats) {
        if (const auto problem = cap::caveat_problem(caveat)) {
            return fail(exit_code::usage, fmt::format("--caveat {}", *problem));
        }
    }
    if (const auto text = args.value("--expires-in")) {
        const auto lasts_s = duration_s(*text);
        if (!lasts_s) {
            return fail(exit_code::usage,
                fmt::format("--expires-in \"{}\": needs a number and s, m, h or d, at most ten "
                            "years; such as 90s, 30m, 1h or 7d",
                    text->substr(0, 32)));
        }
        caveats.push_back(fmt::format("expires={}", std::time(nullptr) + *lasts_s));
    }
    return caveats;
}

answer print_token(const arguments& args, const result<std::string>& token) {
    if (!token) {
        return fail(exit_code::bad_input, token.error().message);
    }
    print_line(args.json() ? std::move(json_object().add("token", *token)).str() : *token);
    return exit_code::ok;
}

// A caveat as it stands, and for a time also the date that it means.
std::string caveat_text(std::string_view caveat) {
    const auto text = printable(caveat);
    const auto equals = caveat.find('=');
    const auto name = caveat.substr(0, equals);
    if (equals == caveat.npos || (name != "expires" && name != "not-before")) {
        return text;
    }
    const auto digits = caveat.substr(equals + 1);
    int64_t unix_s = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), unix_s);
    constexpr int64_t year_9999_s = 253'402'300'799; // further than that a date says nothing
    if (parsed.ec != std::errc{} || unix_s < 0 || unix_s > year_9999_s) {
        return text;
    }
    const bool past = unix_s <= std::time(nullptr);
    return fmt::format("{}  ({:%Y-%m-%d %H:%M:%S} UTC{})", text,
        fmt::gmtime(static_cast<std::time_t>(unix_s)), past && name == "expires" ? ", over" : "");
}

std::string info_json(const cap::token_info& info) {
    json_array caveats;
    for (const auto& caveat : info.caveats) {
        caveats.add(caveat);
    }
    const auto list = std::move(caveats).str();
    return std::move(json_object().add("key", info.key_id).add("caveats", raw_json{list})).str();
}

outcome<void> need_sodium() {
    // Without it libsodium promises no good random source.
    if (sodium_init() < 0) {
        return fail(exit_code::bad_input, "libsodium finds no random source");
    }
    return {};
}

} // namespace

answer cap_keygen(const arguments& args) {
    if (auto ready = need_sodium(); !ready) {
        return std::unexpected(ready.error());
    }
    cap::root_key key{};
    randombytes_buf(key.data(), key.size());
    std::array<char, 2 * sizeof(key) + 1> hex{};
    sodium_bin2hex(hex.data(), hex.size(), key.data(), key.size());
    const auto& id = args.operands().front();
    const auto line = fmt::format("{} {}", id, hex.data());
    // The reader of keys files decides which ids are good, so that no key is made that it refuses.
    if (const auto ring = cap::keyring::parse(line); !ring || ring->find(id) == nullptr) {
        return fail(exit_code::usage, "a key id has 1 to 32 letters, digits, '-' or '_'");
    }
    print_line(
        args.json() ? std::move(json_object().add("id", id).add("key", hex.data())).str() : line);
    return exit_code::ok;
}

answer cap_mint(const arguments& args) {
    const auto path = args.value("--keys");
    const auto key_id = args.value("--key");
    if (!path || !key_id) {
        return fail(exit_code::usage, "cap mint needs --keys FILE and --key ID");
    }
    const auto caveats = caveats_of(args);
    if (!caveats) {
        return std::unexpected(caveats.error());
    }
    if (auto ready = need_sodium(); !ready) {
        return std::unexpected(ready.error());
    }
    const auto keys = read_keys(*path);
    if (!keys) {
        return std::unexpected(keys.error());
    }
    if (keys->find(*key_id) == nullptr) {
        return fail(exit_code::bad_input, fmt::format("{}: has no key \"{}\"", *path, *key_id));
    }
    return print_token(args, cap::mint(*keys, *key_id, *caveats));
}

answer cap_attenuate(const arguments& args) {
    const auto caveats = caveats_of(args);
    if (!caveats) {
        return std::unexpected(caveats.error());
    }
    if (caveats->empty()) {
        return fail(exit_code::usage, "cap attenuate needs --caveat or --expires-in");
    }
    const auto token = read_token(args.operands().front());
    if (!token) {
        return std::unexpected(token.error());
    }
    return print_token(args, cap::attenuate(*token, *caveats));
}

answer cap_inspect(const arguments& args) {
    const auto token = read_token(args.operands().front());
    if (!token) {
        return std::unexpected(token.error());
    }
    const auto info = cap::inspect(*token);
    if (!info) {
        return fail(exit_code::bad_input, info.error().message);
    }
    if (args.json()) {
        print_line(info_json(*info));
        return exit_code::ok;
    }
    print_line(fmt::format("key     {}", printable(info->key_id)));
    for (const auto& caveat : info->caveats) {
        print_line(fmt::format("caveat  {}", caveat_text(caveat)));
    }
    return exit_code::ok;
}

} // namespace tidepool::ctl
