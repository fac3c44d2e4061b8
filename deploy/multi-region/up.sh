#!/usr/bin/env bash
# Runs three regions on this machine, a redis-server and a node of quotad each, and shows what they promise: under skewed
# demand the limit moves to where it is wanted; a region that is cut off falls to its fixed split, and says so; after the
# cut its share comes back; and in no window do all regions together admit more than the limit. It ends what it started
# and takes about 20 seconds. Exit code 0: so it was; 1: it was not, or could not be run.
#
# With --stay it starts the regions and keeps them running, for you to play with, until Ctrl+C.
#
#   QUOTAD=/path/to/quotad   the binary; default: it is built with Go
#   NET=127.0                the first two numbers of the loopback addresses that are used
set -euo pipefail
case "$*" in
  '') stay= ;;
  --stay) stay=yes ;;
  *) echo "up.sh: unknown arguments: $*; give none, or --stay" >&2; exit 2 ;;
esac
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
NET=${NET:-127.0}
regions=(us-east eu-west ap-south)
dir=$(mktemp -d)
servers=() # process ids of the redis-servers, the nodes, and the shells that send requests
nodes=()
senders=()

say() { printf '%-8s %s\n' "$1" "$2"; }

fail() {
  say failed "$1" >&2
  tail -n 5 "$dir"/*.log >&2 2>/dev/null || true
  exit 1
}

# stop ends processes, at first politely.
stop() { # process id...
  local give_up=$((SECONDS + 20)) pid
  kill -TERM "$@" 2>/dev/null || true
  for pid in "$@"; do
    while kill -0 "$pid" 2>/dev/null && ((SECONDS < give_up)); do sleep 0.1; done
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
}

# end stops what was started: first who asks, then who answers, then what they stand on.
end() {
  touch "$dir/stop"
  ((${#senders[@]} == 0)) || stop "${senders[@]}"
  ((${#nodes[@]} == 0)) || stop "${nodes[@]}"
  ((${#servers[@]} == 0)) || stop "${servers[@]}"
  rm -rf "$dir"
}
trap end EXIT
trap 'exit 1' INT TERM

address() { # of a region
  case $1 in
    us-east) echo "$NET.0.11" ;;
    eu-west) echo "$NET.1.11" ;;
    ap-south) echo "$NET.2.11" ;;
  esac
}

quotad() { "$QUOTAD" "$@"; }

at() { echo "http://$(address "$1"):8080"; }
admin_at() { echo "http://$(address "$1"):8083"; }

# until_true runs a command again and again until it succeeds. After a minute it gives up: a busy machine may need so long.
until_true() { # what is waited for, command...
  local give_up=$((SECONDS + 60)) what=$1
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < give_up)) || fail "not in time: $what"
    sleep 0.2
  done
}

listens() { (exec 3<>"/dev/tcp/$1/$2"); }

# in_touch says that a node is ready and degraded towards none of the two others.
in_touch() {
  local status
  status=$(quotad status -o json --addr "$(admin_at "$1")") || return 1
  [[ $(grep -c '"heard": true' <<<"$status") == 2 ]] && ! grep -q '"degraded": true' <<<"$status"
}

# start_node starts the binary itself, and not the function above: its process id is to be that of the node.
start_node() { # index of its region
  "$QUOTAD" serve --config "$dir/${regions[$1]}.yaml" --bootstrap >>"$dir/${regions[$1]}.log" 2>&1 &
  nodes[$1]=$!
}

# started is in_touch, and starts a node again that gave up, as a service manager does: on a busy machine its Redis may
# have been too slow for it.
started() { # index of its region
  in_touch "${regions[$1]}" && return
  kill -0 "${nodes[$1]}" 2>/dev/null || start_node "$1"
  return 1
}

# figure prints a number of the ledger of the account's bucket in a region: fixed split, share, used.
# On a busy machine the Redis may be too slow for the node to look.
figure() {
  local try shown
  for try in 1 2 3 4 5; do
    shown=$(quotad explain --ledger account --domain api account=42 --addr "$(admin_at "$1")") && break
  done
  awk -F '  +' -v name="$2" '$1 == name { print $2 + 0 }' <<<"$shown"
}

has_more() { (($(figure "$1" share) > $(figure "$1" "fixed split"))); }
has_its_split() { (($(figure "$1" share) == $(figure "$1" "fixed split"))); }
is_degraded() {
  local decision
  decision=$(quotad check --peek --domain api account=42 -o json --addr "$(at "$1")") || true # it may well be denied
  grep -q '"degraded": true' <<<"$decision"
}

show() {
  local region
  for region in "${regions[@]}"; do
    say '' "$(printf '%-8s fixed split %3d, share %3d' "$region" "$(figure "$region" "fixed split")" "$(figure "$region" share)")"
  done
}

# send asks a region for units of account 42, one request after the other, and writes down what it was answered. It ends
# by itself should nobody end it.
send() { # region, units a request, pause between requests
  local region=$1 cost=$2 pause=$3 give_up=$((SECONDS + 300)) answer
  while [[ ! -e $dir/stop ]] && ((SECONDS < give_up)); do
    answer=$(quotad check --domain api account=42 --cost "$cost" -o json --addr "$(at "$region")" 2>>"$dir/send.log" | tr -d ' \n') || true
    echo "$cost ${answer:-unanswered}" >>"$dir/answers-$region"
    sleep "$pause"
  done
}

# verdict adds up what all regions admitted in each window. A request without an answer may have been admitted.
verdict() {
  awk -v limit=100 '
    $2 == "unanswered" { unknown++; next }
    match($2, /"cell":[0-9]+/) {
      cell = substr($2, RSTART + 7, RLENGTH - 7)
      windows[cell] += 0
      if ($2 ~ /"allowed":true/) windows[cell] += $1
    }
    END {
      for (cell in windows) { n++; if (windows[cell] > most) most = windows[cell] }
      printf "%d windows, at most %d of %d units admitted in one, %d requests unanswered\n", n, most, limit, unknown
      exit !(n > 0 && most > 0 && most + 0 <= limit && unknown == 0)
    }' "$dir"/answers-*
}

command -v redis-server >/dev/null || fail 'redis-server is not installed: apt-get install redis-server, or brew install redis'
if [[ -z ${QUOTAD:-} ]]; then
  QUOTAD=$dir/quotad
  (cd "$here/../.." && go build -o "$QUOTAD" ./cmd/quotad) || fail 'quotad cannot be built; set QUOTAD to a binary'
fi
quotad version >/dev/null || fail "$QUOTAD does not run; set QUOTAD to a binary of quotad"

cp "$here/limits.yaml" "$dir/"
QUOTAD=$QUOTAD "$here/keys.sh" "$dir" >/dev/null || fail 'the keys cannot be made'
for region in "${regions[@]}"; do
  sed "s/127\.0\./$NET./g" "$here/$region.yaml" >"$dir/$region.yaml"
  mkdir "$dir/redis-$region"
  redis-server "$here/redis.conf" --bind "$(address "$region")" --port 6379 --aclfile "$here/redis-users.acl" \
    --dir "$dir/redis-$region" --appendfsync no >"$dir/redis-$region.log" 2>&1 & # nothing here outlives the run
  servers+=($!)
done
for i in "${!regions[@]}"; do
  until_true "the Redis of ${regions[i]} answers" listens "$(address "${regions[i]}")" 6379
  start_node "$i"
done
for i in "${!regions[@]}"; do
  until_true "${regions[i]} is ready and has heard the others" started "$i"
done
say start 'three regions, one limit: 100 units in 2s for account 42, split 40/40/20'

if [[ -n $stay ]]; then
  for region in "${regions[@]}"; do
    say "$region" "API $(at "$region"), gRPC $(address "$region"):8081, console $(admin_at "$region")/"
  done
  say try "curl -i --json '{\"domain\":\"api\",\"descriptors\":{\"account\":\"42\"}}' $(at us-east)/v1/check"
  say try "quotad explain account account=42 --addr $(admin_at us-east)"
  say try "quotad cut eu-west --for 30s --addr $(admin_at us-east)"
  say stays 'until Ctrl+C'
  wait "${nodes[@]}"
  fail "the nodes ended"
fi

send us-east 20 0.1 & senders+=($!)
send eu-west 2 0.4 & senders+=($!)
send ap-south 1 0.4 & senders+=($!)
until_true 'us-east holds more than its fixed split' has_more us-east
say skew 'us-east wants more than its part, the others want less:'
sleep 2
show

quotad cut eu-west --for 5m --addr "$(admin_at us-east)" >/dev/null
quotad cut ap-south --for 5m --addr "$(admin_at us-east)" >/dev/null
until_true 'us-east is degraded' is_degraded us-east
until_true 'us-east falls to its fixed split' has_its_split us-east
sleep 3
has_its_split us-east || fail 'us-east does not stay on its fixed split'
say cut 'us-east is cut off from the others: degraded, and on its fixed split'
show

quotad cut eu-west --heal --addr "$(admin_at us-east)" >/dev/null
quotad cut ap-south --heal --addr "$(admin_at us-east)" >/dev/null
until_true 'us-east hears the others again' in_touch us-east
until_true 'the share of us-east comes back' has_more us-east
sleep 2
say heal 'the regions hear each other again, and units move:'
show

touch "$dir/stop"
wait "${senders[@]}"
result=$(verdict) || fail "the limit was not kept: $result"
say ok "$result"
