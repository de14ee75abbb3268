#!/usr/bin/env bash
# Prints the prefix of a Seastar built for one configuration, building it first if the cache has none.
#   usage: scripts/seastar.sh Release|Sanitize        (progress goes to stderr, the prefix to stdout)
# SEASTAR_PREFIX=DIR uses one that you built (of the same configuration). TIDEPOOL_CACHE moves the cache.
#
# Debian has no binary package of Seastar, but the source package ceph in its testing suite carries a complete
# one. Its tarball is found through the archive's signed index and checked by the index's SHA256, so the
# archive's signature covers what we build, and no host is written down: the site is the machine's own.
set -euo pipefail
cd "$(dirname "$0")/.."

config=${1:?usage: scripts/seastar.sh Release|Sanitize}
suite=forky
cache=${TIDEPOOL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tidepool}
cxx=${CXX:-clang++-19}
cc=${CC:-clang-19}
flags=(
    -DCMAKE_CXX_STANDARD=23 -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx"
    -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache
    -DSeastar_APPS=OFF -DSeastar_DEMOS=OFF -DSeastar_DOCS=OFF -DSeastar_TESTING=ON
    -DSeastar_IO_URING=ON -DSeastar_DPDK=OFF -DSeastar_ENABLE_TESTS_ACCESSING_INTERNET=OFF
)

say() { echo "seastar: $*" >&2; }

case "$config" in Release | Sanitize) ;; *) say "no such configuration: $config" && exit 2 ;; esac
if [ -n "${SEASTAR_PREFIX:-}" ]; then
    ls "$SEASTAR_PREFIX"/lib*/cmake/Seastar/SeastarConfig.cmake >/dev/null || { say "no Seastar in $SEASTAR_PREFIX"; exit 1; }
    echo "$SEASTAR_PREFIX"
    exit 0
fi

recipe=$(printf '%s\n' "${flags[@]}" "$suite" | sha256sum | cut -c1-8)
compiler=$("$cxx" -dumpversion)
key=clang$compiler-$config-$recipe

# The newest finished build of this recipe, whatever version of the source it is.
finished() {
    local newest='' stamp
    for stamp in "$cache"/seastar-*-"$key"/.complete; do
        if [ -e "$stamp" ] && { [ -z "$newest" ] || [ "$stamp" -nt "$newest" ]; }; then newest=$stamp; fi
    done
    echo "${newest%/.complete}"
}

prefix=$(finished)
[ -n "$prefix" ] && { echo "$prefix"; exit 0; }
mkdir -p "$cache"
exec 9>"$cache/lock-$key"
flock -n 9 || { say "another build of $config is under way, waiting for it"; flock 9; }
prefix=$(finished)
[ -n "$prefix" ] && { echo "$prefix"; exit 0; }

# The site that most of the machine's package lists come from; nothing without lists.
debian_site() {
    apt-get indextargets --format '$(SITE)' 'Created-By: Packages' |
        awk '!/security/ {n[$0]++} END {for (s in n) if (n[s] > most) {most = n[s]; site = s} print site}'
}

# A private apt directory with one line, so that the machine's own package lists stay as they are.
private_apt() {
    local site
    site=$(debian_site)
    # Images are often shipped without package lists; the site is known only with them.
    if [ -z "$site" ] && [ "$(id -u)" -eq 0 ]; then
        apt-get update -qq
        site=$(debian_site)
    fi
    [ -n "$site" ] || { say "apt has no package lists: run apt-get update first"; exit 1; }
    mkdir -p "$cache/apt/lists/partial" "$cache/apt/cache/archives/partial"
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $site $suite main" >"$cache/apt/sources.list"
    site_url=$site
    apt_options=(-o Dir::Etc::sourcelist="$cache/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o Dir::State::lists="$cache/apt/lists" -o Dir::Cache="$cache/apt/cache" -o APT::Sandbox::User=root)
}

# Sets version, tarball (file name), size, sum, directory from the signed source index.
find_tarball() {
    local record
    record=$(apt-cache "${apt_options[@]}" showsrc --only-source ceph | awk '
        /^Version:/ {v=$2} /^Directory:/ {d=$2} /^Checksums-Sha256:/ {s=1; next} /^[^ ]/ {s=0}
        s && $3 ~ /\.orig\.tar\.[a-z0-9]+$/ {f=$3; z=$2; h=$1}
        /^$/ {if (f) print v, f, z, h, d; f=""} END {if (f) print v, f, z, h, d}' | sort -V | tail -n 1)
    read -r version tarball size sum directory <<<"$record"
    [ -n "${sum:-}" ] || { say "the source index of $suite names no ceph tarball"; exit 1; }
    version=${version%-*}
}

fetch() {
    local file=$cache/$tarball pid
    if [ -f "$file" ] && echo "$sum  $file" | sha256sum -c --status; then return; fi
    say "downloading $tarball ($((size / 1000000)) MB)"
    rm -f "$file"
    /usr/lib/apt/apt-helper "${apt_options[@]}" download-file "$site_url/$directory/$tarball" "$file" "SHA256:$sum" >"$cache/download.log" 2>&1 &
    pid=$!
    while kill -0 $pid 2>/dev/null; do
        sleep 5
        [ -f "$file" ] && say "downloaded $(($(stat -c %s "$file") * 100 / size)) %"
    done
    wait $pid || { tail -n 5 "$cache/download.log" >&2; exit 1; }
}

unpack() {
    [ -f "$cache/src-$version/.complete" ] && return
    say "unpacking Seastar from $tarball"
    rm -rf "$cache/src-$version" && mkdir -p "$cache/src-$version"
    tar -xf "$cache/$tarball" -C "$cache/src-$version" --wildcards '*/src/seastar' --strip-components=3
    touch "$cache/src-$version/.complete"
}

show_progress() {
    local line n=0
    while IFS= read -r line; do
        case "$line" in '['*) n=$((n + 1)) && [ $((n % 10)) -eq 0 ] && say "${line%%]*}] $config" ;; esac
    done
    return 0
}

build() {
    local tree=$cache/build-$version-$key
    prefix=$cache/seastar-$version-$key
    rm -rf "$prefix"
    say "configuring $config (log: $tree.log)"
    cmake -G Ninja -S "$cache/src-$version" -B "$tree" -DCMAKE_BUILD_TYPE="$config" \
        -DCMAKE_INSTALL_PREFIX="$prefix" "${flags[@]}" >"$tree.log" 2>&1 || { tail -n 20 "$tree.log" >&2; exit 1; }
    say "building $config (about ten minutes on two cores)"
    # Ninja's own counter, about one line a minute.
    ninja -C "$tree" seastar seastar_testing seastar_perf_testing 2>&1 | tee -a "$tree.log" | show_progress ||
        { grep -n -A5 -m3 'FAILED\|error:' "$tree.log" >&2; exit 1; }
    cmake --install "$tree" >>"$tree.log" 2>&1 || { tail -n 20 "$tree.log" >&2; exit 1; }
    touch "$prefix/.complete"
    rm -rf "$tree"
}

private_apt
if ! compgen -G "$cache/apt/lists/*Sources*" >/dev/null; then
    say "reading the source index of Debian $suite"
    apt-get "${apt_options[@]}" update -qq >"$cache/update.log" 2>&1 || { tail -n 5 "$cache/update.log" >&2; exit 1; }
fi
find_tarball
say "Seastar as in ceph $version"
fetch
unpack
build
say "ready: $prefix"
echo "$prefix"
