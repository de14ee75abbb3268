#!/usr/bin/env bash
# Installs the Debian packages of scripts/packages.txt that are missing. Seconds when there is nothing to do.
# Without root it changes nothing and prints the one line to run.
set -euo pipefail
cd "$(dirname "$0")/.."

installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
available() { [ -n "$(apt-cache madison "$1" 2>/dev/null)" ]; }

# Picks the installed alternative of "a|b", or else the first one that apt knows, or else the first.
choose() {
    local alternatives name
    IFS='|' read -ra alternatives <<<"$1"
    for name in "${alternatives[@]}"; do installed "$name" && { echo "$name"; return; }; done
    for name in "${alternatives[@]}"; do available "$name" && { echo "$name"; return; }; done
    echo "${alternatives[0]}"
}

list_missing() {
    local line name
    while read -r line; do
        case "$line" in '' | '#'*) continue ;; esac
        name=$(choose "$line")
        installed "$name" || echo "$name"
    done <scripts/packages.txt
}

missing=$(list_missing)
if [ -z "$missing" ]; then
    echo "deps: all $(grep -cv '^#' scripts/packages.txt) packages are installed"
    exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "deps: missing packages; run: sudo apt-get install --no-install-recommends $(tr '\n' ' ' <<<"$missing")" >&2
    exit 1
fi

export DEBIAN_FRONTEND=noninteractive
echo "deps: apt-get update"
apt-get update -qq
missing=$(list_missing) # alternatives are chosen anew: the lists may only exist now
echo "deps: installing $(wc -w <<<"$missing") packages:" $missing
# No service of a test's broker or database may start by itself: tests run their own on free ports.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
    printf '#!/bin/sh\nexit 101\n' >$policy && chmod +x $policy
    trap 'rm -f $policy' EXIT
fi
# shellcheck disable=SC2086
apt-get install -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 $missing |
    awk '/^Setting up/ {n++; if (n % 20 == 0) print "deps: " n " packages set up"}'
[ -z "$(list_missing)" ] || { echo "deps: still missing:" $(list_missing) >&2; exit 1; }
echo "deps: done"
