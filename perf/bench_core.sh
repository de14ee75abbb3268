#!/usr/bin/env bash
# make bench-core: about two minutes. Every comparison prints both raw figures, then its RATIO line.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=build/release
$bin/perf/mailbox_bench -c2 -m512M --poll-mode --default-log-level=error
$bin/perf/head_bench
python3 perf/http_bench.py $bin/apps/node/tidepool
