/*
 * Reloading the configuration on every core.
 *
 * One reloader and two cores. A core has a pointer to an immutable snapshot; readers take the
 * pointer once, hold a reference (lw_shared_ptr) and read two fields across a suspension point. A
 * reload is read and checked first, then copied to every core (any copy may fail), and only when
 * all cores have theirs is the pointer of each core switched. Cores switch one after the other: two
 * cores may differ for a moment, one reader never sees two versions.
 *
 * Checked:
 *   - a reader's two fields are of one version, and of memory that still lives;
 *   - after a good reload every core has the new version; after a bad file or a failed copy every
 *     core has the old one, and no copy is left over;
 *   - no deadlock (no invalid end state).
 *
 * BREAK_* switches put one mistake each into the model; run.sh expects Spin to find every one.
 */

#define CORES 2
#define READERS 2 /* on each core */
#define READS 2   /* by each reader, one after the other */
#define RELOADS 2 /* attempts, each good or bad */

/* On a core at most: the current one, one that is staged, and one held by each reader. */
#define SLOTS 4
#define NONE 255

/* Snapshots as memory: each slot has two fields and a reference count; 0 is freed. A core uses only
 * its own SLOTS of them. */
#define ALL_SLOTS (CORES * SLOTS)
byte field_a[ALL_SLOTS];
byte field_b[ALL_SLOTS];
byte references[ALL_SLOTS];
byte current[CORES]; /* config_store::_current on this core */
byte staged[CORES];  /* config_store::_staged: the copy that waits for the switch, or NONE */

byte version = 1; /* of the last reload that went through */
byte slot;        /* the reloader's scratch variable */

/* A reference is dropped; the last one frees the slot, and its fields become garbage. */
inline release(which) {
	references[which]--;
	if
	:: references[which] == 0 -> field_a[which] = 0; field_b[which] = 0
	:: else
	fi
}

/* config_store::snapshot() and a service that holds the reference across a suspension. */
proctype reader(byte c) {
	byte n, held, first;

	do
	:: n < READS ->
		atomic {
			held = current[c];
			references[held]++;
			assert(references[held] > 1);
			first = field_a[held]
		};
		/* A suspension point: anything may happen on this core between the two reads. */
#ifdef BREAK_TAKE_TWICE
		atomic {
			release(held);
			held = current[c];
			references[held]++
		};
#endif
		atomic {
			assert(references[held] > 0);
			assert(first != 0 && field_b[held] == first);
			release(held);
			held = 0;
			first = 0
		};
		n++
	:: n == READS -> break
	od
}

/* A free slot for the copy: what the allocator does. */
inline allocate(c) {
	slot = c * SLOTS;
	do
	:: slot < (c + 1) * SLOTS && references[slot] > 0 -> slot++
	:: else -> break
	od;
	assert(slot < (c + 1) * SLOTS);
	references[slot] = 1
}

/* config_store::stage on one core: a complete copy that nobody can see yet. Its fields are written
 * in two steps, because the copy comes over in pieces. */
inline stage(c, next) {
#ifdef BREAK_NO_STAGE
	field_a[current[c]] = next;
	field_b[current[c]] = next
#else
	atomic { allocate(c); field_a[slot] = next };
	atomic { field_b[slot] = next; staged[c] = slot }
#endif
}

/* config_store::switch_to_staged on one core: cannot fail and does not suspend. The old snapshot
 * lives on as long as a reader holds it. */
inline switch_to_staged(c) {
	atomic {
		if
		:: staged[c] != NONE ->
#ifdef BREAK_FREE_EARLY
			references[current[c]] = 1;
#endif
			release(current[c]);
			current[c] = staged[c];
			staged[c] = NONE
		:: else
		fi
	}
}

/* config_store::drop_staged on one core. */
inline drop_staged(c) {
	atomic {
		if
		:: staged[c] != NONE -> release(staged[c]); staged[c] = NONE
		:: else
		fi
	}
}

#define version_on(c) field_a[current[c]]

proctype reloader() {
	byte n, c;
	bool failed;

	do
	:: n < RELOADS ->
		failed = false;
		c = 0;
		/* SIGHUP: read and check the file. A bad one ends here. */
		if
		:: skip
		:: failed = true
		fi;
		/* Phase one, a hop to every core. The copy may fail on any of them (no memory). */
		do
		:: !failed && c < CORES ->
			if
			:: stage(c, version + 1);
#ifdef BREAK_SWITCH_EARLY
				switch_to_staged(c);
#endif
				c++
			:: failed = true
			fi
		:: failed || c == CORES -> break
		od;
		/* Phase two: all cores have their copy, or none gets one. */
		c = 0;
		do
		:: c < CORES && !failed -> switch_to_staged(c); c++
		:: c < CORES && failed -> drop_staged(c); c++
		:: c == CORES -> break
		od;
		if
		:: !failed -> version++
		:: failed
		fi;
		assert(version_on(0) == version && version_on(1) == version);
		assert(staged[0] == NONE && staged[1] == NONE);
		n++
	:: n == RELOADS -> break
	od
}

init {
	byte c, r;
	atomic {
		do
		:: c < CORES ->
			current[c] = c * SLOTS;
			field_a[current[c]] = version;
			field_b[current[c]] = version;
			references[current[c]] = 1;
			staged[c] = NONE;
			r = 0;
			do
			:: r < READERS -> run reader(c); r++
			:: r == READERS -> break
			od;
			c++
		:: c == CORES -> break
		od;
		run reloader()
	};
	/* At the very end nothing but the current snapshot is left on a core. */
	_nr_pr == 1;
	c = 0;
	do
	:: c < CORES ->
		r = c * SLOTS;
		assert(references[r] + references[r + 1] + references[r + 2] + references[r + 3] == 1);
		c++
	:: c == CORES -> break
	od
}
