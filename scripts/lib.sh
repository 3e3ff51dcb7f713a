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

# Go stamps the commit into binaries, and refuses to build where git is there
# but does not answer, for instance in a container under another user.
if [ -e .git ] && ! git rev-parse HEAD >/dev/null 2>&1; then
  export GOFLAGS="${GOFLAGS:-} -buildvcs=false"
fi
