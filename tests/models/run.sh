#!/usr/bin/env bash
# Checks every model with Spin, and that every check can fail: each BREAK_ switch puts one mistake
# into a model, and Spin must find it. Needs spin and gcc. Usage: tests/models/run.sh
set -euo pipefail

models=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

memory_mib=1024
depth=100000 # of the search; an error of its own if a model needs more

# check <model> <safety|liveness> <good|bad> [-Dswitch...]: one search, with its verdict.
check() {
    local model=$1 kind=$2 expected=$3
    shift 3
    local title="$model $kind${*:+ $*}" verdict
    local dir
    dir=$(mktemp -d -p "$work")
    if ! search "$dir" "$model" "$kind" "$@" >"$dir/log" 2>&1; then
        verdict="spin or gcc failed"
    else
        verdict=$(verdict_of "$dir/log")
    fi
    if [[ $verdict == "$expected" ]]; then
        passed=$((passed + 1))
        printf 'ok    %-62s %s\n' "$title" "$(outcome_of "$dir/log" "$expected")"
    else
        failed=$((failed + 1))
        printf 'FAIL  %-62s expected %s, got: %s\n' "$title" "$expected" "$verdict"
        tail -n 20 "$dir/log"
    fi
}

# -O1: with more, compiling takes longer than the faster search saves.
search() {
    local dir=$1 model=$2 kind=$3
    shift 3
    cd "$dir"
    spin -a "$@" "$models/$model.pml"
    if [[ $kind == safety ]]; then
        gcc -O1 -w -DSAFETY -DNOCLAIM -DMEMLIM=$memory_mib -o pan pan.c
        ./pan -m$depth
    else
        # Weak fairness: a process that can always go on does so in the end.
        gcc -O1 -w -DMEMLIM=$memory_mib -DNFAIR=3 -o pan pan.c
        ./pan -a -f -m$depth
    fi
}

# "good" only for a search that was complete; "bad" only for a mistake that was found.
verdict_of() {
    local log=$1
    if grep -Eq 'max search depth too small|out of memory|reached -DMEMLIM|Search not completed' \
        "$log" && ! grep -Eq 'errors: [1-9]' "$log"; then
        echo "the search is not complete"
    elif grep -Eq 'errors: 0$' "$log"; then
        echo good
    elif grep -Eq 'errors: [1-9]' "$log"; then
        echo bad
    else
        echo "no result"
    fi
}

outcome_of() {
    local log=$1 expected=$2
    if [[ $expected == good ]]; then
        awk '/states, stored/ { print $1 " states" }' "$log" | head -n 1
    else
        sed -n 's/^pan:[0-9]*: \(.*\) (at depth.*/found: \1/p' "$log" | head -n 1
    fi
}

# Two calls by each of two fibers on one core; and one call from each of two cores, for the searches
# for cycles, which take several times as long as the others.
one_core=(-DCORES=1 -DFIBERS=2 -DCALLS=2)
two_cores=(-DCORES=2 -DFIBERS=2 -DCALLS=1)

check mailbox safety good
check mailbox safety good "${one_core[@]}"
check mailbox liveness good "${two_cores[@]}"
check mailbox liveness good "${one_core[@]}"
check mailbox safety bad -DBREAK_ACCEPT_AFTER_CLOSE
check mailbox safety bad -DBREAK_CREDIT_EARLY
check mailbox safety bad -DBREAK_DOUBLE_COUNT
check mailbox safety bad -DBREAK_LOSE_ABORTED
check mailbox safety bad -DBREAK_STOP_EARLY
check mailbox liveness bad "${two_cores[@]}" -DBREAK_NO_ABORT
check config_swap safety good
check config_swap safety bad -DBREAK_NO_STAGE
check config_swap safety bad -DBREAK_TAKE_TWICE
check config_swap safety bad -DBREAK_SWITCH_EARLY
check config_swap safety bad -DBREAK_FREE_EARLY

echo "models: $passed passed, $failed failed"
[[ $failed == 0 ]]
