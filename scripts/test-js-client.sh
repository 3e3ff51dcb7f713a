#!/usr/bin/env bash
# Asks the fake Google with Google's clients of Gmail and Calendar for JavaScript, a witness that
# shares no code with ours. Skips, saying so, where node or npm are absent or the
# npm registry is out of reach.
#
# usage: scripts/test-js-client.sh
#   HEADROOM_BIN     the binary to test; built from this tree if unset
#   HEADROOM_JS_DIR  where the client is installed; a folder of the user's cache if unset
. "$(dirname "$0")/lib.sh"

readonly email=ann@example.com
readonly dir=${HEADROOM_JS_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/headroom/js-client}

skip() {
  say "skipped the JavaScript client: $*"
  exit 0
}

for tool in node npm; do
  command -v "$tool" >/dev/null || skip "$tool is not installed"
done
[ "$(node -p 'Number(process.versions.node.split(".")[0]) >= 18')" = true ] ||
  skip "node 18 or later is needed, this is $(node --version)"

readonly tmp=$(mktemp -d "${TMPDIR:-/tmp}/headroom-js.XXXXXX")
fake_pid=''
cleanup() {
  if [ -n "$fake_pid" ]; then
    kill "$fake_pid" 2>/dev/null && wait "$fake_pid" 2>/dev/null || true
  fi
  rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# The client goes to a folder outside the tree, and stays there for the next run.
mkdir -p "$dir"
cp scripts/js-client/package.json scripts/js-client/check.mjs "$dir/"
if ! (cd "$dir" && npm ls --silent >/dev/null 2>&1); then
  say "installing Google's clients into $dir"
  (cd "$dir" && npm install --silent --no-audit --no-fund --no-package-lock --fetch-retries=1 --fetch-timeout=30000) \
    >"$tmp/npm.log" 2>&1 || { tail -n 5 "$tmp/npm.log"; skip "npm could not install Google's clients"; }
fi

bin=${HEADROOM_BIN:-}
if [ -z "$bin" ]; then
  bin=$tmp/headroom
  go build -o "$bin" ./cmd/headroom
fi

"$bin" fake-google --listen 127.0.0.1:0 --mailbox "$email=generate:120" --calendar "$email=generate:30" >"$tmp/out" 2>"$tmp/err" &
fake_pid=$!
url=''
for _ in $(seq 1 100); do
  url=$(sed -n '1s/.*"url": *"\([^"]*\)".*/\1/p' "$tmp/out")
  [ -z "$url" ] || break
  kill -0 "$fake_pid" 2>/dev/null || break
  sleep 0.1
done
if [ -z "$url" ]; then
  cat "$tmp/err" >&2
  fail "the fake Google said no url within ten seconds" "its last words are above"
fi

node "$dir/check.mjs" "$url" "$email" || fail "the JavaScript client disagrees with the fake Google at $url" "what differs is above"
