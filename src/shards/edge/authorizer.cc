#include "shards/edge/authorizer.hh"

#include <seastar/core/coroutine.hh>
#include <seastar/core/file.hh>
#include <seastar/core/seastar.hh>
#include <seastar/util/file.hh>

namespace tidepool {

namespace {

constexpr uint64_t keys_file_max_bytes = 64 * 1024;

result<std::string_view> bearer_token(std::string_view header) {
    constexpr std::string_view scheme = "Bearer ";
    if (header.size() <= scheme.size()
        || !http::equals_ignoring_case(header.substr(0, scheme.size()), scheme)) {
        return fail(errc::unauthorized, "needs a Bearer capability", "Authorization");
    }
    return header.substr(scheme.size());
}

} // namespace

result<uint64_t> authorizer::check(const http::request_head& head,
    std::optional<std::string_view> account, uint64_t body_max_bytes) {
    constexpr auto no_limit = std::numeric_limits<uint64_t>::max();
    if (head.authorization.empty() && !_runtime.conf->auth.required) {
        return no_limit;
    }
    const auto token = bearer_token(head.authorization);
    if (!token) {
        return std::unexpected(token.error());
    }
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const cap::request_facts facts{.method = name(head.verb),
        .path = head.path,
        .account = account,
        .body_bytes = head.chunked ? body_max_bytes : head.content_length.value_or(0),
        .audience = _runtime.conf->node.name,
        .now_unix_s = std::chrono::duration_cast<std::chrono::seconds>(now).count()};
    auto granted = cap::verify(_keys, *token, facts);
    if (!granted) {
        return std::unexpected(std::move(granted.error()));
    }
    if (granted->rate_per_s) {
        if (auto taken = take_rate(granted->token_hash, *granted->rate_per_s); !taken) {
            return std::unexpected(std::move(taken.error()));
        }
    }
    return granted->body_max_bytes.value_or(no_limit);
}

result<void> authorizer::take_rate(uint64_t token, uint64_t rate_per_s) {
    assert_owner();
    const auto now = std::chrono::steady_clock::now();
    // A token's rate holds for the node; each core grants its part of it.
    const double part = std::max(1.0, static_cast<double>(rate_per_s) / ss::smp::count);
    const auto [row, fresh] = _rates.try_emplace(token, part, part);
    if (fresh) {
        _rate_order.push_back(token);
        if (_rate_order.size() > rated_tokens_max) {
            _rates.erase(_rate_order.front());
            _rate_order.pop_front();
        }
    }
    auto& bucket = _rates.at(token);
    if (rate_per_s == 0 || !bucket.try_take(1, now)) {
        _runtime.metrics.quota_reject.add("capability_rate");
        return std::unexpected(error{
            errc::busy, "the capability's rate is used up", "Authorization", bucket.wait_for(1)});
    }
    return {};
}

ss::future<result<cap::keyring>> read_keyring(std::string path) {
    try {
        const auto stat = co_await ss::file_stat(path, ss::follow_symlink::yes);
        const auto others =
            ss::file_permissions::group_permissions | ss::file_permissions::others_permissions;
        if (stat.type != ss::directory_entry_type::regular
            || (stat.mode & static_cast<unsigned>(others)) != 0) {
            co_return fail(errc::bad_request, fmt::format("{}: must be a file of mode 0600", path),
                "auth.keys_file");
        }
        if (stat.size > keys_file_max_bytes) {
            co_return fail(
                errc::bad_request, fmt::format("{}: is too long", path), "auth.keys_file");
        }
        const auto text = co_await ss::util::read_entire_file_contiguous(path);
        auto keys = cap::keyring::parse(std::string_view(text.data(), text.size()));
        if (!keys) {
            keys.error().message = fmt::format("{}: {}", path, keys.error().message);
        }
        co_return keys;
    } catch (const std::exception& e) {
        co_return fail(errc::bad_request, fmt::format("{}: {}", path, e.what()), "auth.keys_file");
    }
}

} // namespace tidepool
