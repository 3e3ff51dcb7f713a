#!/usr/bin/env bash
# Checks what a reviewer should not have to.
. "$(dirname "$0")/lib.sh"

say "gofmt"
unformatted=$(gofmt -l .)
[ -z "$unformatted" ] || fail "not formatted; run gofmt -w on:" $unformatted

say "go vet"
go vet ./...

say "staticcheck"
go tool staticcheck ./...

say "no paths of a machine"
scripts/check-paths.sh
