#!/usr/bin/env bash
# Fails when a file of the repository names a path that only exists on somebody's
# machine: a home folder or a place of work.
. "$(dirname "$0")/lib.sh"

if git rev-parse HEAD >/dev/null 2>&1; then
  files() { git ls-files -z; }
else
  files() { find . -type f ! -path './.git/*' ! -path './bin/*' ! -path '*/node_modules/*' -print0; }
fi

readonly local_path='(^|[^A-Za-z0-9._/-])/(root|work|home/[a-z]+|Users/[A-Za-z]+)/'
found=$(files | xargs -0 grep -InE "$local_path" /dev/null || true)
[ -z "$found" ] || fail "these lines name a path of somebody's machine:" "$found"
