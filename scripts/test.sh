#!/usr/bin/env bash
# Runs every test, with a redis-server of its own that is stopped whatever happens.
# Tests find it in REDIS_URL. They run under the race detector, except for those of
# whole processes and of one goroutine.
#
# usage: scripts/test.sh [package]...   all packages if none is named
. "$(dirname "$0")/lib.sh"
# Whole processes and commands, and occurrences of events, which are worked out by
# one goroutine: the detector makes these three to ten times slower.
readonly plain=(./internal/app ./internal/lab/bench ./cmd/headroom ./internal/agenda)
# Tests of one goroutine in packages of several: the ledger on a clock of the
# test's own, and SQLite with thousands of rows.
readonly sequential='^(TestLedgerAgainstModel|TestTwoShapesSideBySide|TestALimitAtHalfIsFoundAndLeftBehind|TestSortingNeedsNoFiles|TestThousandsOfFailuresListAndReplay)$'
all=''
if [ $# -eq 0 ]; then
  set -- $(go list ./... | grep -v -e /quota$ -e /internal/app$ -e /internal/lab/bench$ -e /cmd/headroom$ -e /internal/agenda$)
  all=yes
fi

readonly tmp=$(mktemp -d "${TMPDIR:-/tmp}/headroom-test.XXXXXX")
redis_pid=''
guard_pid=''

cleanup() {
  local pid
  for pid in $guard_pid $redis_pid; do
    kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true
  done
  rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# start_redis starts a server on a port that was free, and waits until the one
# that answers there is ours.
start_redis() {
  local try wait port
  for try in 1 2 3 4 5; do
    port=$((20000 + RANDOM % 20000))
    redis-server --port "$port" --bind 127.0.0.1 --dir "$tmp" --save '' --appendonly no \
      --maxmemory-policy noeviction --daemonize no >"$tmp/redis.log" 2>&1 &
    redis_pid=$!
    for wait in $(seq 1 100); do
      kill -0 "$redis_pid" 2>/dev/null || break
      if redis-cli -p "$port" info server 2>/dev/null | tr -d '\r' | grep -qx "process_id:$redis_pid"; then
        export REDIS_URL="redis://127.0.0.1:$port/0"
        return
      fi
      sleep 0.1
    done
    kill "$redis_pid" 2>/dev/null || true
    wait "$redis_pid" 2>/dev/null || true
    redis_pid=''
  done
  cat "$tmp/redis.log" >&2
  fail "redis-server did not start on any of five ports" "its last words are above"
}

# guard_redis stops the server also when this script is killed without a trap.
guard_redis() {
  (
    trap '' INT
    while kill -0 $$; do sleep 2; done
    kill "$redis_pid"
    rm -rf "$tmp"
  ) >/dev/null 2>&1 &
  guard_pid=$!
}

say "compiling; the first time takes some four minutes, each package shows when it is compiled"
go build -race -v "$@"
say "compiling the tests"
go test -race -run '^$' "$@"
[ -z "$all" ] || {
  go test -race -run '^$' ./quota
  go test -run '^$' ./quota ./internal/store/sqlite "${plain[@]}"
}

start_redis
guard_redis
say "testing, with redis-server at $REDIS_URL"
started=$SECONDS
if [ -z "$all" ]; then
  go test -race -p 2 -parallel 8 -timeout 6m "$@"
else
  go test -race -p 2 -parallel 8 -timeout 6m -skip "$sequential" "$@"
  go test -p 2 -parallel 8 -timeout 6m -run "$sequential" ./quota ./internal/store/sqlite
  # From here on tests wait for most of their time: more of them at once. Those of
  # the ledger are by themselves, since what they measure is who may call when.
  go test -race -parallel 12 -timeout 6m -skip "$sequential" ./quota
  go test -p 2 -parallel 12 -timeout 6m "${plain[@]}"
fi
if [ -x scripts/test-js-client.sh ]; then
  say "testing with Google's client for JavaScript"
  scripts/test-js-client.sh
fi
say "all tests passed in $((SECONDS - started)) s"
