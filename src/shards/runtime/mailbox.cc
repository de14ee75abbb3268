#include "shards/runtime/mailbox.hh"

#include <seastar/core/reactor.hh>
#include <seastar/util/later.hh>

namespace tidepool {

using detail::mailbox_batch;
using detail::mailbox_call;

mailbox_credit::~mailbox_credit() {
    if (_home) {
        _home->give_back(_to);
    }
}

mailbox_core::peer::peer(mailbox_core& home, ss::shard_id to, unsigned capacity)
    : credits(capacity), flush(std::make_unique<flush_task>(home, to)), waiters(on_expiry{&home}) {}

mailbox_core::mailbox_core(
    const queue_spec& spec, unsigned capacity, queue_registry& registry, mailbox_hops hops)
    // The depth counts calls of this core to all cores, so the capacity does as well.
    : _registered(spec, uint64_t(capacity) * ss::smp::count, registry), _capacity(capacity),
      _hops(hops) {
    _peers.reserve(ss::smp::count);
    for (unsigned to = 0; to < ss::smp::count; ++to) {
        _peers.emplace_back(*this, to, capacity);
    }
}

mailbox_core::~mailbox_core() {
    if (_memory_out > 0 || _flushes_out > 0) {
        ss::on_fatal_internal_error(runtime_log,
            fmt::format("mailbox {} is destroyed with {} calls out", queue_name(), _memory_out));
    }
}

result<mailbox_credit> mailbox_core::try_credit(ss::shard_id to) {
    auto& counts = _registered.counts;
    if (_closed) {
        ++counts.canceled;
        return fail(errc::canceled, "the node is stopping");
    }
    auto& peer = _peers[to];
    // Those who wait come first: otherwise a stream of try_call would starve them.
    if (peer.credits == 0 || !peer.waiters.empty()) {
        ++counts.refused;
        return fail(errc::busy, fmt::format("queue {} is full", queue_name()));
    }
    --peer.credits;
    ++counts.depth;
    ++counts.accepted;
    return mailbox_credit(*this, to);
}

ss::future<result<mailbox_credit>> mailbox_core::wait_credit(ss::shard_id to, deadline until) {
    auto& peer = _peers[to];
    if (_closed || (peer.credits > 0 && peer.waiters.empty())) {
        return ss::make_ready_future<result<mailbox_credit>>(try_credit(to));
    }
    if (peer.waiters.size() >= _capacity) {
        ++_registered.counts.refused;
        return ss::make_ready_future<result<mailbox_credit>>(
            fail(errc::busy, fmt::format("too many wait for queue {}", queue_name())));
    }
    waiter w;
    auto granted = w.granted.get_future();
    peer.waiters.push_back(std::move(w), until.at());
    return granted;
}

void mailbox_core::on_expiry::operator()(waiter& w) noexcept {
    ++home->_registered.counts.timed_out;
    w.granted.set_value(
        fail(errc::timeout, fmt::format("queue {} stayed full", home->queue_name())));
}

void mailbox_core::give_back(ss::shard_id to) noexcept {
    auto& peer = _peers[to];
    auto& counts = _registered.counts;
    if (!peer.waiters.empty()) {
        // The credit goes straight to the next in line; the depth stays.
        auto next = std::move(peer.waiters.front());
        peer.waiters.pop_front();
        ++counts.accepted;
        next.granted.set_value(mailbox_credit(*this, to));
        return;
    }
    ++peer.credits;
    --counts.depth;
    if (_closed) {
        _changed.broadcast();
    }
}

bool mailbox_core::closed_after_grant() noexcept {
    auto& counts = _registered.counts;
    if (_closed) {
        --counts.accepted;
        ++counts.canceled;
    }
    return _closed;
}

void mailbox_core::send(mailbox_call& call, ss::shard_id to) {
    ++_memory_out;
    _in_flight.push_back(call);
    if (to == ss::this_shard_id()) {
        if (call.run()) {
            call.deliver();
        }
        return;
    }
    auto& peer = _peers[to];
    if (peer.outbox.empty()) {
        ++_flushes_out;
        peer.flush->schedule();
    }
    peer.outbox.push(call);
}

void mailbox_core::flush(ss::shard_id to) noexcept {
    const auto batch = std::exchange(_peers[to].outbox, {});
    // Not lost: every call of the batch is on our books until it is delivered, and _flushes_out
    // until the hop is back.
    (void)ss::smp::submit_to(to, _hops.call, [batch] {
        return run_batch(batch);
    }).then([this](mailbox_call* done) {
        while (done) {
            std::exchange(done, done->next)->deliver();
        }
        --_flushes_out;
        if (_closed) {
            _changed.broadcast();
        }
    });
}

// On the receiver. Starts every call, in order; gives back those that are answered already. Never
// fails.
ss::future<mailbox_call*> mailbox_core::run_batch(mailbox_batch batch) noexcept {
    mailbox_batch done;
    while (!batch.empty()) {
        auto* call = batch.pop();
        // From here a call that is not done belongs to its continuation: it may be gone at any
        // moment.
        if (call->run()) {
            done.push(*call);
        }
        if (ss::need_preempt() && !batch.empty()) {
            return ss::yield().then([batch, done]() mutable {
                return run_batch(batch).then([done](mailbox_call* rest) mutable {
                    if (done.last) {
                        done.last->next = rest;
                    }
                    return done.first ? done.first : rest;
                });
            });
        }
    }
    return ss::make_ready_future<mailbox_call*>(done.first);
}

void mailbox_core::return_to_sender(mailbox_call& call) noexcept {
    if (call.from == ss::this_shard_id()) {
        call.deliver();
        return;
    }
    // Bounded by the sender's credits; the handler does not wait.
    (void)ss::smp::submit_to(call.from, call.home._hops.reply, [&call] { call.deliver(); });
}

// On the receiver, whose own limit it is: under memory pressure every call may fail.
void mailbox_core::log_fault(std::string_view queue, const std::exception_ptr& fault) noexcept {
    static thread_local ss::logger::rate_limit limit(std::chrono::seconds(1));
    runtime_log.log(
        ss::log_level::error, limit, "a call through mailbox {} failed: {}", queue, fault);
}

void mailbox_core::answered(mailbox_call& call) noexcept {
    ++_registered.counts.done;
    _in_flight.erase(_in_flight.iterator_to(call));
}

void mailbox_core::freed() noexcept {
    --_memory_out;
    if (_closed) {
        _changed.broadcast();
    }
}

ss::future<> mailbox_core::close(deadline drain) {
    assert_owner();
    _closed = true;
    for (auto& peer : _peers) {
        while (!peer.waiters.empty()) {
            auto next = std::move(peer.waiters.front());
            peer.waiters.pop_front();
            ++_registered.counts.canceled;
            next.granted.set_value(fail(errc::canceled, "the node is stopping"));
        }
    }
    try {
        co_await _changed.wait(drain.at(), [this] { return idle(); });
    } catch (const ss::condition_variable_timed_out&) {
        runtime_log.warn(
            "mailbox {}: {} calls aborted at the drain deadline", queue_name(), _in_flight.size());
    }
    while (!_in_flight.empty()) {
        auto& call = _in_flight.front();
        _in_flight.pop_front();
        ++_registered.counts.aborted;
        call.abort();
    }
}

ss::future<bool> mailbox_core::stop(deadline until) {
    assert_owner();
    try {
        // Credits, too: a loan that is not freed would give its credit back to a mailbox that is
        // gone.
        co_await _changed.wait(
            until.at(), [this] { return _memory_out == 0 && _flushes_out == 0 && idle(); });
    } catch (const ss::condition_variable_timed_out&) {
        runtime_log.error("mailbox {}: {} calls never came back", queue_name(), _memory_out);
        co_return false;
    }
    co_return true;
}

} // namespace tidepool
