# Sourced by the other scripts: bash 3.2, and no option that only GNU tools have.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# say tells what happens next.
say() { printf '==> %s\n' "$*"; }

# fail ends the script: what is wrong, then the next step.
fail() {
  printf 'error: %s\n' "$1" >&2
  shift
  for line in "$@"; do printf '       %s\n' "$line" >&2; done
  exit 1
}

# version_flags are the flags of the linker that stamp version, commit and date of
# the commit into the binary; empty where git does not know them.
version_flags() {
  git rev-parse HEAD >/dev/null 2>&1 || return 0
  printf -- '-X main.version=%s -X main.commit=%s -X main.date=%s' "$(git describe --tags --always --dirty)" "$(git rev-parse HEAD)" "$(commit_date %Y-%m-%dT%H:%M:%SZ)"
}

# commit_date FORMAT is when the commit was made, in UTC.
commit_date() { TZ=UTC git log -1 --date="format-local:$1" --format=%cd; }

# Go stamps the commit into binaries, and refuses to build where git is there
# but does not answer, for instance in a container under another user.
if [ -e .git ] && ! git rev-parse HEAD >/dev/null 2>&1; then
  export GOFLAGS="${GOFLAGS:-} -buildvcs=false"
fi
