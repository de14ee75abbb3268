#!/usr/bin/env bash
# Runs the tests of one build tree with ctest.   usage: scripts/test.sh release|sanitize
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:?usage: scripts/test.sh release|sanitize}
export ASAN_OPTIONS=disable_coredump=0:abort_on_error=1:detect_stack_use_after_return=1
export UBSAN_OPTIONS=halt_on_error=1:abort_on_error=1:print_stacktrace=1
export BOOST_TEST_CATCH_SYSTEM_ERRORS=no
# One at a time: most tests use both cores.
ctest --test-dir "build/$preset" --output-on-failure --timeout 600 ${TESTS:+-R "$TESTS"}
