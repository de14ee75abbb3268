/*
 * The mailbox between cores, and its close.
 *
 * Two sender cores, one receiver, and a shutdown that may begin at any moment. On core 0 one fiber
 * uses try_call and another call_within, and they compete for its credit; core 1 has one of the
 * second kind. Each core has its own credits for this receiver, CREDITS_PER_CORE of them, as in
 * mailbox<T>, so the receiver never holds more than CAPACITY calls.
 *
 * Time is not modelled: every deadline is a choice that may be taken at any moment, which covers
 * every length it could have. What one atomic block does is what the code does between two
 * suspension points on one core.
 *
 * Checked:
 *   - no deadlock (no invalid end state);
 *   - nothing is accepted after close on its core, and never more than CAPACITY calls are held;
 *   - nobody comes back to a mailbox whose stop() has ended, since it may be freed then;
 *   - every call is settled exactly once, also when its answer comes after its sender gave up;
 *   - at the end: sent == done + refused + timed_out + canceled + aborted, all credits are back;
 *   - a close that was requested ends (ltl, under weak fairness).
 *
 * BREAK_* switches put one mistake each into the model; run.sh expects Spin to find every one.
 */

/* The setting above; run.sh also checks others, and then gives all three numbers. */
#ifndef CORES
#define CORES 2
#define FIBERS 3 /* 0 and 2 on core 0, 1 on core 1 */
#define CALLS 1  /* that each fiber makes, one after the other */
#endif
#define CREDITS_PER_CORE 1
#define CAPACITY (CORES * CREDITS_PER_CORE)
#define IDS (FIBERS * CALLS)

#define core_of(id) (((id) / CALLS) % CORES)

mtype = { unused, pending, settled };

byte credits[CORES] = CREDITS_PER_CORE; /* the sender's semaphore for this receiver */
bool closed[CORES];                     /* mailbox_core::_closed; not at one moment on all cores */
bool gone[CORES];                       /* stop() has ended: this core's mailbox may be freed */
mtype call_state[IDS] = unused;         /* the promise that the caller waits for */
byte memory_out[CORES];                 /* mailbox_core::_memory_out: calls that exist */
byte held;                              /* the same over all cores: the receiver's burden */

/* smp::submit_to: delivers, keeps the order, cannot be recalled. */
chan wire = [CAPACITY] of { byte };

/* How calls ended: the counters that the mailbox's probe shows. */
byte sent, done, refused, timed_out, canceled, aborted;

bool close_requested, aborting, stopped;
byte fibers_left = FIBERS;
byte cores_open = CORES;
#ifdef BREAK_CREDIT_EARLY
bool given_up[IDS];
#endif

/* Whoever comes first settles a call and counts it; whoever comes later changes nothing. */
inline settle(id, counter) {
	if
	:: call_state[id] == pending -> call_state[id] = settled; counter++
	:: else -> skip
	fi
}

/* mailbox::start and mailbox_core::send: with a credit in hand and without a suspension since
 * `closed` was looked at. */
inline send(id) {
	assert(!closed[core_of(id)]);
	call_state[id] = pending;
	memory_out[core_of(id)]++;
	held++;
	assert(held <= CAPACITY);
	wire!id
}

/* mailbox::try_call, up to the hop: a credit now, or an answer now. */
inline try_send(id) {
	atomic {
		sent++;
		if
		:: closed[core_of(id)] -> canceled++
		:: !closed[core_of(id)] && credits[core_of(id)] == 0 -> refused++
		:: !closed[core_of(id)] && credits[core_of(id)] > 0 ->
			credits[core_of(id)]--;
			send(id)
		fi
	}
}

/* mailbox::call_within, up to the hop. give_back() hands a waiter its credit in one task and the
 * waiter runs in a later one: `closed` may have changed between the two, so it is looked at again.
 * The code serves waiters in their order; here any fiber may get the credit, which covers more. */
inline wait_and_send(id) {
	atomic { sent++; granted = false };
	if
	:: atomic { !closed[core_of(id)] && credits[core_of(id)] > 0 ->
		credits[core_of(id)]--;
		granted = true }
	:: atomic { closed[core_of(id)] -> canceled++ } /* close() answers all who wait */
	:: atomic { timed_out++ }                       /* the deadline, at any moment */
	fi;
	if
	:: granted -> atomic {
		assert(!gone[core_of(id)]);
		if
#ifndef BREAK_ACCEPT_AFTER_CLOSE
		:: closed[core_of(id)] -> credits[core_of(id)]++; canceled++
		:: !closed[core_of(id)] -> send(id)
#else
		:: send(id)
#endif
		fi }
	:: !granted
	fi
}

/* The caller waits for its answer, for the abort at shutdown, or gives up by a deadline of its own.
 * A call that it gives up still runs on the receiver, so its credit stays taken. (A call whose
 * deadline passed before the receiver got to it is answered by the receiver as any other: done.) */
inline await_answer(id) {
	if
	:: atomic { call_state[id] != pending }
	:: atomic { call_state[id] == pending ->
		settle(id, timed_out);
#ifdef BREAK_CREDIT_EARLY
		given_up[id] = true;
		credits[core_of(id)]++
#endif
	}
	fi
}

proctype sender_fiber(byte fiber; bool waits) {
	byte n, id;
	bool granted;

	id = fiber * CALLS;
	do
	:: n < CALLS ->
		if
		:: waits -> wait_and_send(id)
		:: !waits -> try_send(id)
		fi;
		await_answer(id);
		atomic { n++; id++ }
	:: n == CALLS -> break
	od;
	atomic { n = 0; id = 0; fibers_left-- }
}

/* typed_call::run on the receiver, and deliver() on the sender. */
proctype receiver() {
	byte id;

end_idle:
	do
	:: wire?id ->
		if
		:: call_state[id] == settled /* nobody waits for it any more: no work is done */
		:: call_state[id] == pending ->
			if
			:: skip             /* the handler finishes */
			:: skip -> aborting /* or it hangs until its service is told to abort */
			fi
		fi;
		/* deliver(): only now the credit goes back, and the answer if it is still wanted. */
		atomic {
			assert(!gone[core_of(id)]);
			memory_out[core_of(id)]--;
			held--;
#ifdef BREAK_DOUBLE_COUNT
			if
			:: call_state[id] == settled -> done++
			:: else -> settle(id, done)
			fi;
#else
			settle(id, done);
#endif
#ifdef BREAK_CREDIT_EARLY
			if
			:: !given_up[id] -> credits[core_of(id)]++
			:: given_up[id]
			fi;
#else
			credits[core_of(id)]++;
			assert(credits[core_of(id)] <= CREDITS_PER_CORE);
#endif
			id = 0
		}
	od
}

/* mailbox_core::close and stop on one core: refuse, drain up to the deadline, abort and count the
 * rest, wait until the mailbox may be freed. */
proctype closer(byte core) {
	byte id;

	closed[core] = true;
	if
	:: credits[core] == CREDITS_PER_CORE /* drained in time: idle() */
	:: skip ->                           /* the drain deadline passed, with whatever is still out */
#ifndef BREAK_NO_ABORT
		atomic {
			aborting = true; /* the node stops the service that runs the calls */
			do
			:: id < IDS && core_of(id) == core ->
#ifdef BREAK_LOSE_ABORTED
				if
				:: call_state[id] == pending -> call_state[id] = settled
				:: else
				fi;
#else
				settle(id, aborted);
#endif
				id++
			:: id < IDS && core_of(id) != core -> id++
			:: id == IDS -> id = 0; break
			od
		}
#else
		skip
#endif
	fi;
	/* stop(): no call of ours is left on the other core, and no credit is in the hands of a waiter
	 * that has not run yet or of an answer that is not freed: each comes back to the mailbox. */
#ifdef BREAK_STOP_EARLY
	memory_out[core] == 0;
#else
	memory_out[core] == 0 && credits[core] == CREDITS_PER_CORE;
#endif
	gone[core] = true;
	cores_open--
}

/* The node's stop: at any moment, on all cores at once. */
proctype shutdown() {
	byte i;

	atomic {
		close_requested = true;
		do
		:: i < CORES -> run closer(i); i++
		:: i == CORES -> break
		od
	};
	cores_open == 0;
	stopped = true;

	/* What is true at the very end, when every caller heard. */
	fibers_left == 0;
	assert(sent == IDS);
	assert(sent == done + refused + timed_out + canceled + aborted);
	assert(held == 0);
	i = 0;
	do
	:: i < CORES -> assert(credits[i] == CREDITS_PER_CORE && memory_out[i] == 0); i++
	:: i == CORES -> break
	od
}

init {
	atomic {
		run receiver();
		run sender_fiber(0, false);
		run sender_fiber(1, true);
#if FIBERS == 3
		run sender_fiber(2, true);
#endif
		run shutdown()
	}
}

ltl no_lost_shutdown { [] (close_requested -> <> stopped) }
