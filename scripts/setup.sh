#!/usr/bin/env bash
# Makes sure that tools are there, and installs what is missing through apt-get
# or brew. Says so before it changes anything; does nothing when all is there.
#
# usage: scripts/setup.sh [go] [cc] [redis-server] [ics]
. "$(dirname "$0")/lib.sh"

readonly next_go='install Go 1.26 or later from https://go.dev/dl and run this again'

# install PACKAGE... for apt-get; the same names serve brew, see brew_name.
install() {
  if command -v apt-get >/dev/null 2>&1; then
    local sudo=''
    if [ "$(id -u)" -ne 0 ]; then
      command -v sudo >/dev/null 2>&1 || fail "$* missing, and no sudo to install it with" \
        "run as root: apt-get install $*"
      sudo='sudo'
    fi
    say "installing $* with ${sudo:+sudo }apt-get"
    $sudo apt-get update -q || say "apt-get update failed; trying with the package lists that are there"
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@" || fail "apt-get could not install $*" \
      "install it by hand and run this again"
  elif command -v brew >/dev/null 2>&1; then
    local name
    for name in "$@"; do
      say "installing $(brew_name "$name") with brew"
      brew install "$(brew_name "$name")" || fail "brew could not install $(brew_name "$name")" \
        "install it by hand and run this again"
    done
  else
    fail "$* missing, and neither apt-get nor brew to install it with" \
      "install it with your system's package manager and run this again"
  fi
}

brew_name() {
  case "$1" in
    redis-server) echo redis ;;
    *) echo "$1" ;;
  esac
}

need_go() {
  command -v go >/dev/null 2>&1 || fail "there is no go on PATH" "$next_go"
  # An older go fetches the toolchain that go.mod names, when it may.
  go version >/dev/null 2>&1 || fail "this go cannot build the module" "$next_go"
}

# The race detector needs a C compiler with the headers of its library, except
# on macOS.
need_cc() {
  [ "$(uname -s)" != Darwin ] || return 0
  compiles_c && return 0
  install gcc libc6-dev
  compiles_c || fail "gcc was installed, but $(go env CC) does not compile" "try: echo '#include <stdlib.h>' | $(go env CC) -E -"
}

compiles_c() { echo '#include <stdlib.h>' | $(go env CC) -E - >/dev/null 2>&1; }

need_redis() {
  if ! command -v redis-server >/dev/null 2>&1; then
    install redis-server
    command -v redis-server >/dev/null 2>&1 || fail "redis-server was installed but is not on PATH" \
      "open a new shell and run this again"
  fi
  local version
  version=$(redis-server --version | sed -n 's/.* v=\([0-9]*\.[0-9]*\).*/\1/p')
  case "$version" in
    [0-5].* | 6.[01]) fail "redis-server is $version; 6.2 or later is needed" "upgrade it and run this again" ;;
  esac
}

# A second library for calendars, which one test compares with. Without it, as where
# there is no apt-get, that part of the test is skipped.
need_ics() {
  local python
  for python in python3 /usr/bin/python3; do
    "$python" -c 'import icalendar, recurring_ical_events' >/dev/null 2>&1 && return 0
  done
  if command -v apt-get >/dev/null 2>&1; then
    (install python3-icalendar python3-recurring-ical-events) || say "tests go without them"
  else
    say "no python3 has icalendar and recurring_ical_events; tests go without them"
  fi
}

[ $# -gt 0 ] || set -- go cc redis-server ics
for tool in "$@"; do
  case "$tool" in
    go) need_go ;;
    cc) need_cc ;;
    redis-server) need_redis ;;
    ics) need_ics ;;
    *) fail "unknown tool $tool" "usage: scripts/setup.sh [go] [cc] [redis-server] [ics]" ;;
  esac
done
