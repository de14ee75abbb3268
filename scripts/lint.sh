#!/usr/bin/env bash
# clang-format, self-contained headers, clang-tidy, and the rules that no tool knows. Needs a configured release tree.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=$(nproc)
failed=0
say() { echo "lint: $*"; }

mapfile -t sources < <(git ls-files '*.cc' '*.hh')

say "clang-format on ${#sources[@]} files"
clang-format-19 --dry-run -Werror "${sources[@]}" || failed=1

say "our own rules"
# Functions and lines a reader holds in mind; no host of a registry; one alias for Seastar.
awk 'length($0) > 100 {print FILENAME ":" FNR ": longer than 100 columns"; bad = 1} END {exit bad}' "${sources[@]}" || failed=1
if grep -nE 'using namespace seastar|seastar::' -- $(git ls-files 'src/*.cc' 'src/*.hh') | grep -v 'namespace ss = seastar'; then
    say "src/ writes ss::, not seastar::" && failed=1
fi
if grep -rnE 'seastar' -- $(git ls-files 'src/proto/*' | grep -E '\.(hh|cc)$'); then
    say "src/proto is free of Seastar" && failed=1
fi
if git grep -nE 'deb\.debian\.org|registry\.npmjs' -- . ':!scripts/lint.sh'; then
    say "no registry's host is written down" && failed=1
fi
for header in $(git ls-files '*.hh'); do
    head -n 20 "$header" | grep -q '#pragma once' || { say "$header lacks #pragma once"; failed=1; }
done

if [ ! -f build/release/compile_commands.json ]; then
    scripts/build.sh release tidepool_pch
fi

# A header must compile by itself, with the flags of a source beside it.
say "self-contained headers"
flags=$(python3 - <<'PY'
import json, shlex
for entry in json.load(open("build/release/compile_commands.json")):
    if entry["file"].endswith("apps/node/node.cc"):
        words = shlex.split(entry["command"])
        keep = [w for w in words[2:] if w.startswith(("-D", "-std"))]
        for i, w in enumerate(words):
            if w in ("-isystem",):
                keep += [w, words[i + 1]]
            elif w.startswith("-I"):
                keep.append(w)
        print(" ".join(shlex.quote(w) for w in keep))
        break
PY
)
git ls-files 'src/*.hh' 'apps/*.hh' | xargs -P "$jobs" -I{} sh -c \
    "printf '#include \"%s\"\n' \"\$PWD/{}\" | ccache clang++-19 $flags -Isrc -Iapps -x c++ -fsyntax-only - || { echo {} is not self-contained; exit 255; }" || failed=1

say "clang-tidy (a while)"
git ls-files 'src/*.cc' 'apps/*.cc' | xargs -P "$jobs" -n 3 clang-tidy-19 --quiet -p build/release 2>/dev/null || failed=1

[ "$failed" -eq 0 ] && say "clean" || { say "FAILED"; exit 1; }
