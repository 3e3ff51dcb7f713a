#!/usr/bin/env bash
# Runs the benchmarks of bin/headroom one after the other; each prints its
# result as JSON. Goes on after one that failed, and fails in the end.
. "$(dirname "$0")/lib.sh"

[ -x bin/headroom ] || fail "there is no bin/headroom" "run: make build"
failed=''
for name in $(bin/headroom bench --list | awk '{ print $1 }'); do
  say "bin/headroom bench $name"
  bin/headroom bench "$name" --json || failed="$failed $name"
done
[ -z "$failed" ] || fail "failed:$failed" "run one alone with: bin/headroom bench NAME --json"
