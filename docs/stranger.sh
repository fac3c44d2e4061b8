#!/usr/bin/env bash
# Takes a newcomer's path through README.md in a clean clone of the last commit, and prints how long it is: words to read
# and seconds to the first 429, and to three regions of which the console shows a cut link. Compiling is timed apart.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
dir=$(mktemp -d)
dev=
trap '[[ -z $dev ]] || kill "$dev"; rm -rf "$dir"' EXIT

now() { date +%s.%N; }
since() { awk -v from="$1" -v to="$(now)" 'BEGIN { printf "%.1f s\n", to - from }'; }
until_true() { # what is waited for, command...
  local give_up=$((SECONDS + 60)) what=$1
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < give_up)) || { echo "not within a minute: $what" >&2; exit 1; }
    sleep 0.05
  done
}

words=$(sed '/^The eleventh answer is/q' "$here/README.md" | wc -w)
printf '%-45s %s\n' 'words to read up to the first 429' "$words"

began=$(now)
git clone -q "$here" "$dir/quotad"
cd "$dir/quotad"
printf '%-45s %s\n' 'clone' "$(since "$began")"
began=$(now)
go build -o "$dir/quotad-dev" ./cmd/quotad
printf '%-45s %s\n' 'compile' "$(since "$began")"

PORT=${PORT:-8080}
began=$(now)
"$dir/quotad-dev" dev --port "$PORT" >"$dir/dev.txt" 2>&1 & dev=$!
until_true 'quotad dev answers' grep -q 'Ctrl+C' "$dir/dev.txt"
asks() { # as README.md says; true if the answer is 429
  [[ $(curl -s -o /dev/null -w '%{http_code}' -H 'Content-Type: application/json' \
    -d '{"domain":"api","descriptors":{"account":"42"}}' "localhost:$PORT/v1/check") == 429 ]]
}
until_true 'the answer is 429' asks
printf '%-45s %s\n' 'from the start to the first 429' "$(since "$began")"

admin=localhost:$((PORT + 3))
curl -sf -H 'Content-Type: application/json' -d '{"region":"us-east","for":"1m"}' "$admin/v1/cut" >/dev/null
degraded() { curl -sf "$admin/v1/overview" | grep -q '"region":"us-east"[^}]*"degraded":true'; }
until_true 'the console shows the cut' degraded
printf '%-45s %s\n' 'from the start to a cut link in the console' "$(since "$began")"
((words <= 150)) || { echo 'more than 150 words' >&2; exit 1; }
