#!/usr/bin/env bash
# Runs each fuzz target for FUZZ_SECONDS (30). New inputs go to build/, so the corpus in the tree stays small.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${FUZZ_SECONDS:-30}
for target in build/fuzz/tests/fuzz/*_fuzz; do
    name=$(basename "$target")
    found=build/fuzz/found/$name
    mkdir -p "$found"
    echo "fuzz: $name for $seconds s"
    "$target" -max_total_time="$seconds" -print_final_stats=1 -artifact_prefix="$found/" -max_len=65536 \
        "$found" "tests/fuzz/corpus/$name" 2>&1 | tail -n 4
done
