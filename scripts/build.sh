#!/usr/bin/env bash
# Configures and builds one preset against the Seastar of the same configuration.
#   usage: scripts/build.sh release|sanitize|fuzz [target...]
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:?usage: scripts/build.sh release|sanitize|fuzz [target...]}
shift
prefix=
case "$preset" in
release) prefix=$(scripts/seastar.sh Release) ;;
sanitize) prefix=$(scripts/seastar.sh Sanitize) ;;
esac

configure() {
    cmake --preset "$preset" -DCMAKE_PREFIX_PATH="$prefix" -DTIDEPOOL_LTO="${LTO:-OFF}" >"build/$preset.configure.log" 2>&1 ||
        { tail -n 30 "build/$preset.configure.log" >&2; exit 1; }
}

mkdir -p build
# Ninja runs CMake again when a CMake file changed; a new prefix or option needs it here.
settings="$prefix ${LTO:-OFF}"
if [ "$(cat "build/$preset.settings" 2>/dev/null)" != "$settings" ] || [ ! -f "build/$preset/build.ninja" ]; then
    echo "build: configuring $preset"
    configure
    echo "$settings" >"build/$preset.settings"
fi
echo "build: compiling $preset"
# A terminal shows ninja's own counter; a log gets each step on a line.
cmake --build --preset "$preset" ${1:+--target "$@"}
