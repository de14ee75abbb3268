// The mailbox: the only way between cores. A named, bounded, typed call to the core that owns a
// thing.
//
//   auto answer = co_await _calls.try_call(owner_of(key), dl, [&](echo_service& s) { return
//   s.get(key); });
//
// Which core: each core has its own mailbox object and is the sender; the function runs on the
// receiving core, on that core's instance of the service. The function and what it captured live in
// the sender's memory until the answer is back, are freed there, and may be referred to while it
// runs; what the receiver keeps, it must copy. Bounded: credits per (sender, receiver). No credit:
// try_call refuses with `busy` at once, call_within waits for one up to a time (at most `capacity`
// callers) and then gives up with `timeout`. Calls to the own core pay too. A credit is held until
// the answer is back on the sender; with a `loan` in the answer, until the loan is freed. Hops:
// calls to the same core within one poll of the reactor travel together; an answer that is ready
// when the batch was run returns with it, a later one on its own, so a slow call delays nobody.
// Stop: close() refuses with `canceled`, waits for what is in flight up to the drain deadline, then
// answers the rest with `canceled` and counts it as aborted. stop() waits for the receivers to let
// go of the memory.
#pragma once

#include "proto/base/errc.hh"
#include "shards/runtime/deadline.hh"
#include "shards/runtime/groups.hh"
#include "shards/runtime/owner.hh"
#include "shards/runtime/queue_registry.hh"

#include <boost/intrusive/list.hpp>
#include <memory>
#include <seastar/core/condition-variable.hh>
#include <seastar/core/coroutine.hh>
#include <seastar/core/expiring_fifo.hh>
#include <seastar/core/future.hh>
#include <seastar/core/sharded.hh>
#include <seastar/core/task.hh>
#include <vector>

namespace tidepool {

class mailbox_core;

// The right to have one call in flight; gives itself back.
class mailbox_credit {
    mailbox_core* _home = nullptr;
    ss::shard_id _to = 0;

public:
    mailbox_credit() = default;
    mailbox_credit(mailbox_core& home, ss::shard_id to) : _home(&home), _to(to) {}
    mailbox_credit(mailbox_credit&& other) noexcept
        : _home(std::exchange(other._home, nullptr)), _to(other._to) {}
    mailbox_credit& operator=(mailbox_credit&& other) noexcept {
        std::swap(_home, other._home);
        std::swap(_to, other._to);
        return *this;
    }
    ~mailbox_credit();
};

// Memory of the other core inside an answer. It is freed on its own core, and the call's credit
// stays taken until then, so that answers count against the bound like questions do.
template <typename T>
class loan {
    ss::foreign_ptr<std::unique_ptr<T>> _value;
    mailbox_credit _credit;

public:
    explicit loan(std::unique_ptr<T> value) : _value(std::move(value)) {}
    const T& operator*() const noexcept { return *_value; }
    const T* operator->() const noexcept { return _value.get(); }
    void attach(mailbox_credit credit) noexcept { _credit = std::move(credit); }
};

namespace detail {

template <typename T>
inline constexpr bool is_loan = false;
template <typename T>
inline constexpr bool is_loan<loan<T>> = true;

// A call in flight. Made, answered and freed on the sender; run() happens on the receiver.
struct mailbox_call : public boost::intrusive::list_base_hook<> {
    mailbox_core& home;
    mailbox_call* next = nullptr; // in the batch that carries it
    ss::shard_id from = ss::this_shard_id();
    bool aborted = false; // the caller was told already; only memory is left to free
    deadline expires;
    mailbox_credit credit;

    mailbox_call(mailbox_core& h, deadline dl, mailbox_credit c)
        : home(h), expires(dl), credit(std::move(c)) {}
    virtual ~mailbox_call() = default;

    // On the receiver. True: the answer is here. False: return_to_sender() will follow.
    virtual bool run() noexcept = 0;
    // On the sender: hands the answer to the caller.
    virtual void deliver() noexcept = 0;
    virtual void abort() noexcept = 0;
};

// Calls on their way to one core, in order.
struct mailbox_batch {
    mailbox_call* first = nullptr;
    mailbox_call* last = nullptr;

    bool empty() const noexcept { return first == nullptr; }
    void push(mailbox_call& call) noexcept {
        call.next = nullptr;
        (last ? last->next : first) = &call;
        last = &call;
    }
    mailbox_call* pop() noexcept {
        auto* call = first;
        first = call->next;
        last = first ? last : nullptr;
        return call;
    }
};

} // namespace detail

struct mailbox_hops {
    ss::smp_service_group call;
    ss::smp_service_group reply;
};

// The untyped part: credits, batches, closing. Lives on the sending core.
class mailbox_core : public owned {
public:
    mailbox_core(const queue_spec&, unsigned capacity, queue_registry&, mailbox_hops);
    ~mailbox_core();
    mailbox_core(const mailbox_core&) = delete;
    mailbox_core& operator=(const mailbox_core&) = delete;

    const queue_counts& counts() const noexcept { return _registered.counts; }
    std::string_view queue_name() const noexcept { return _registered.spec.name; }
    unsigned capacity() const noexcept { return _capacity; }

    // Refuse new calls, wait for those in flight until `drain`, abort and count the rest. Once.
    ss::future<> close(deadline drain);
    // After close(): until every receiver has let go. True when nothing is left.
    ss::future<bool> stop(deadline);

protected:
    // A credit at once, or why not.
    result<mailbox_credit> try_credit(ss::shard_id to);
    ss::future<result<mailbox_credit>> wait_credit(ss::shard_id to, deadline until);
    // True once closed; then the grant is taken off the books and counted as canceled.
    bool closed_after_grant() noexcept;
    // Sends a call that holds its credit. It may be answered before this returns.
    void send(detail::mailbox_call& call, ss::shard_id to);

    registered_queue _registered;

private:
    friend class mailbox_credit;
    template <typename Service, typename Func>
    friend struct typed_call;

    struct waiter {
        ss::promise<result<mailbox_credit>> granted;
    };
    struct on_expiry {
        mailbox_core* home;
        void operator()(waiter& w) noexcept;
    };
    using waiter_queue = ss::expiring_fifo<waiter, on_expiry, ss::lowres_clock>;

    // Sends the batch of one receiver when the reactor gets to it: after everything that is ready
    // now has run.
    struct flush_task final : public ss::task {
        mailbox_core& home;
        ss::shard_id to;
        flush_task(mailbox_core& h, ss::shard_id t) : home(h), to(t) {}
        // In the scheduling group of the caller, which the hop then carries over to the receiver.
        void schedule() noexcept {
            set_scheduling_group(ss::current_scheduling_group());
            ss::schedule(this);
        }
        void run_and_dispose() noexcept override { home.flush(to); }
        ss::task* waiting_task() noexcept override { return nullptr; }
    };
    struct peer {
        unsigned credits;
        detail::mailbox_batch outbox;
        std::unique_ptr<flush_task> flush;
        waiter_queue waiters;
        peer(mailbox_core&, ss::shard_id, unsigned capacity);
    };

    unsigned _capacity;
    mailbox_hops _hops;
    bool _closed = false;
    std::vector<peer> _peers;
    boost::intrusive::list<detail::mailbox_call> _in_flight; // whose callers still wait
    size_t _memory_out = 0;                                  // calls that exist, answered or not
    size_t _flushes_out = 0;
    ss::condition_variable _changed;

    void flush(ss::shard_id to) noexcept;
    void give_back(ss::shard_id to) noexcept;
    void answered(detail::mailbox_call&) noexcept;
    void freed() noexcept;
    bool idle() const noexcept { return counts().depth == 0; }

    static ss::future<detail::mailbox_call*> run_batch(detail::mailbox_batch) noexcept;
    static void return_to_sender(detail::mailbox_call&) noexcept;
    static void log_fault(std::string_view queue, const std::exception_ptr&) noexcept;
};

// A function and its answer. `Func` gets the receiver's Service& and returns result<T> or
// future<result<T>>.
template <typename Service, typename Func>
struct typed_call final : detail::mailbox_call {
    using returned = std::invoke_result_t<Func&, Service&>;
    using answer = typename ss::futurize<returned>::value_type;

    ss::sharded<Service>& services;
    Func func;
    answer reply = fail(errc::internal);
    ss::promise<answer> promise;

    typed_call(mailbox_core& h, deadline dl, mailbox_credit c, ss::sharded<Service>& s, Func f)
        : mailbox_call(h, dl, std::move(c)), services(s), func(std::move(f)) {}

    bool run() noexcept override {
        if (expires.expired()) {
            reply = fail(errc::timeout, "the deadline passed before the owner core got to it");
            return true;
        }
        auto pending = ss::futurize_invoke(func, services.local());
        if (pending.available()) {
            store(std::move(pending));
            return true;
        }
        // Not lost: the call is on the sender's books until return_to_sender(), and stop() waits
        // for it.
        (void)std::move(pending).then_wrapped([this](ss::future<answer> f) {
            store(std::move(f));
            mailbox_core::return_to_sender(*this);
        });
        return false;
    }

    void store(ss::future<answer>&& f) noexcept {
        if (f.failed()) {
            mailbox_core::log_fault(home.queue_name(), f.get_exception());
            reply = fail(errc::internal, "the owner core failed");
        } else {
            reply = f.get();
        }
    }

    void deliver() noexcept override {
        if (!aborted) {
            using value = typename answer::value_type;
            if constexpr (detail::is_loan<value>) {
                if (reply) {
                    reply->attach(std::move(credit));
                }
            }
            home.answered(*this);
            promise.set_value(std::move(reply));
        }
        auto& mailbox = home;
        delete this;
        mailbox.freed();
    }

    void abort() noexcept override {
        aborted = true;
        promise.set_value(fail(errc::canceled, "the node is stopping"));
    }
};

template <typename Service>
class mailbox : public mailbox_core {
    ss::sharded<Service>& _services;

public:
    mailbox(const queue_spec& spec, unsigned capacity, queue_registry& registry, mailbox_hops hops,
        ss::sharded<Service>& services)
        : mailbox_core(spec, capacity, registry, hops), _services(services) {}

    template <typename Func>
    using answer_of = typename typed_call<Service, Func>::answer;

    // Calls now, or refuses with `busy`.
    template <typename Func>
    ss::future<answer_of<Func>> try_call(ss::shard_id to, deadline dl, Func func) {
        assert_owner();
        auto credit = try_credit(to);
        if (!credit) {
            return ss::make_ready_future<answer_of<Func>>(
                std::unexpected(std::move(credit.error())));
        }
        return start(to, dl, std::move(*credit), std::move(func));
    }

    // Waits for a credit until `wait`, at most until the deadline, then calls.
    template <typename Func>
    ss::future<answer_of<Func>> call_within(
        ss::shard_id to, std::chrono::milliseconds wait, deadline dl, Func func) {
        assert_owner();
        auto credit = co_await wait_credit(to, dl.no_later_than(wait));
        // The mailbox may have closed between the grant and now: nothing is sent after close().
        if (credit && closed_after_grant()) {
            credit = fail(errc::canceled, "the node is stopping");
        }
        if (!credit) {
            co_return std::unexpected(std::move(credit.error()));
        }
        co_return co_await start(to, dl, std::move(*credit), std::move(func));
    }

private:
    template <typename Func>
    ss::future<answer_of<Func>> start(
        ss::shard_id to, deadline dl, mailbox_credit credit, Func func) {
        auto call = std::make_unique<typed_call<Service, Func>>(
            *this, dl, std::move(credit), _services, std::move(func));
        auto answer = call->promise.get_future();
        send(*call.release(), to);
        return answer;
    }
};

} // namespace tidepool
