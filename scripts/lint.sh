#!/usr/bin/env bash
# Checks what a reviewer should not have to. Each check names its rule in its output.
. "$(dirname "$0")/lib.sh"

say "format: goimports, with our packages after others'"
unformatted=$(go tool goimports -local headroom -l .)
[ -z "$unformatted" ] || fail "not formatted; run go tool goimports -local headroom -w on:" $unformatted

say "go vet"
go vet ./...

say "staticcheck"
go tool staticcheck ./...

say "errors are wrapped and inspected with errors.Is and errors.As: errorlint"
go tool go-errorlint ./...

say "comments of exported names, contexts first: revive"
go tool revive -config scripts/revive.toml -formatter plain -set_exit_status ./...

say "spelling: misspell"
git ls-files -z -- '*.go' '*.lua' '*.md' '*.sh' '*.yaml' '*.yml' | xargs -0 go tool misspell -error

say "imports point one way: internal/layers"
go test ./internal/layers

say "no paths of a machine"
scripts/check-paths.sh

say "known vulnerabilities: govulncheck"
status=0
report=$(go tool govulncheck ./... 2>&1) || status=$?
if [ "$status" -ne 0 ] && grep -q 'fetching vulnerabilities' <<<"$report"; then
  echo "skipped: its database cannot be reached: $(grep 'fetching vulnerabilities' <<<"$report" | head -1)"
else
  echo "$report"
  exit "$status"
fi
