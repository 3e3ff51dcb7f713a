#!/usr/bin/env bash
# Builds the archives of a release and their checksums into dist/. The same commit and
# the same Go give the same binaries; with GNU tar the same archives, too.
#
# usage: scripts/release.sh [--snapshot]
#
# --snapshot builds whatever there is; without it, the commit must have a tag and
# nothing may be changed.
. "$(dirname "$0")/lib.sh"

readonly targets='linux/amd64 linux/arm64 darwin/amd64 darwin/arm64'

case "${1:-}" in
  --snapshot) ;;
  '')
    [ -z "$(git status --porcelain)" ] || fail "files are changed or not in git" "commit them, or run: scripts/release.sh --snapshot"
    git describe --tags --exact-match >/dev/null 2>&1 || fail "the commit has no tag" "tag it (git tag v1.2.3), or run: scripts/release.sh --snapshot"
    ;;
  *) fail "unknown argument $1" "usage: scripts/release.sh [--snapshot]" ;;
esac

version=$(git describe --tags --always --dirty)
rm -rf dist
mkdir dist

# archive FOLDER packs dist/FOLDER into dist/FOLDER.tar.gz, the same on every machine.
archive() {
  local owner='--uid 0 --gid 0'
  if tar --version 2>/dev/null | grep -q GNU; then
    owner='--owner=0 --group=0 --numeric-owner --sort=name'
  fi
  find "dist/$1" -exec env TZ=UTC touch -t "$(commit_date %Y%m%d%H%M.%S)" {} +
  tar -c --format=ustar $owner -f - -C dist "$1" | gzip -9n >"dist/$1.tar.gz"
  rm -rf "dist/$1"
}

for target in $targets; do
  name="headroom-$version-${target%/*}-${target#*/}"
  say "building dist/$name.tar.gz"
  mkdir "dist/$name"
  CGO_ENABLED=0 GOOS=${target%/*} GOARCH=${target#*/} \
    go build -trimpath -ldflags "-s -w $(version_flags)" -o "dist/$name/headroom" ./cmd/headroom
  chmod 755 "dist/$name/headroom" "dist/$name"
  for file in README.md LICENSE; do
    [ ! -f "$file" ] || install -m 644 "$file" "dist/$name/$file"
  done
  archive "$name"
done

say "writing dist/checksums.txt"
cd dist
if command -v sha256sum >/dev/null 2>&1; then sha256sum ./*.tar.gz; else shasum -a 256 ./*.tar.gz; fi | sed 's| \./| |' >checksums.txt
cat checksums.txt
