#!/usr/bin/env bash
# Builds bin/headroom, and shows the packages as they compile.
. "$(dirname "$0")/lib.sh"

say "building bin/headroom; the first time takes some four minutes, each package shows when it is compiled"
go build -v -ldflags "$(version_flags)" -o bin/headroom ./cmd/headroom
