#!/usr/bin/env bash
# Starts a node with conf/local.yaml in the foreground and, once it is ready, says what to try.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=build/release/apps

build/release/apps/node/tidepool --config conf/local.yaml "$@" &
node=$!
trap 'kill -TERM $node 2>/dev/null' INT TERM
for _ in $(seq 100); do
    kill -0 $node 2>/dev/null || break
    curl -sf -o /dev/null http://127.0.0.1:9600/readyz && break
    sleep 0.05
done
if kill -0 $node 2>/dev/null; then
    cat <<TEXT

Tidepool is running: http on 127.0.0.1:8080, ops on 127.0.0.1:9600. Try:
  curl http://127.0.0.1:8080/healthz
  curl -X PUT http://127.0.0.1:8080/v1/echo/greeting -d '{"value":"hello"}'
  curl http://127.0.0.1:8080/v1/echo/greeting
Watch it with $bin/ctl/tidepoolctl status --watch; stop it with Ctrl-C.

TEXT
fi
# A signal ends the first wait; the second is for the drain.
code=0
wait $node || code=$?
while kill -0 $node 2>/dev/null; do
    code=0
    wait $node || code=$?
done
exit $code
