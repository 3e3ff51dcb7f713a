#!/usr/bin/env bash
# Runs every test, with a redis-server of its own that is stopped whatever happens.
# Tests find it in REDIS_URL.
#
# usage: scripts/test.sh [--race] [package]...   all packages if none is named
. "$(dirname "$0")/lib.sh"
race=''
if [ "${1:-}" = --race ]; then
  race=-race
  shift
fi
# Tests of the ledger run by themselves: what they measure is who may call when.
# Those of whole processes wait for most of their time, so more of them run at once.
readonly ledger=(./quota/...)
readonly waiting=(./internal/e2e ./internal/lab/bench ./cmd/headroom)
all=''
if [ $# -eq 0 ]; then
  set -- $(go list ./... | grep -v -e /quota -e /internal/e2e$ -e /internal/lab/bench$ -e /cmd/headroom$)
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

say "compiling; the first time takes some minutes, each package shows when it is compiled"
go build $race -v ./...
say "compiling the tests"
go test $race -run '^$' "$@"
[ -z "$all" ] || go test $race -run '^$' "${ledger[@]}" "${waiting[@]}"

start_redis
guard_redis
say "testing${race:+ under the race detector}, with redis-server at $REDIS_URL"
started=$SECONDS
readonly limit=${race:+15m}
go test $race -p 2 -parallel 8 -timeout "${limit:-6m}" "$@"
[ -z "$all" ] || {
  go test $race -p 1 -parallel 12 -timeout "${limit:-6m}" "${ledger[@]}"
  go test $race -p 2 -parallel 12 -timeout "${limit:-6m}" "${waiting[@]}"
}
if [ -z "$race" ] && [ -x scripts/test-js-client.sh ]; then
  say "testing with Google's client for JavaScript"
  scripts/test-js-client.sh
fi
say "all tests passed in $((SECONDS - started)) s"
