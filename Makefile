# `make` lists what there is. Everything that takes more than a line is a script,
# so that it can be read, and run without make.

.DEFAULT_GOAL := help
.PHONY: help build demo test test-race lint bench release clean

help: ## List these targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build bin/headroom (needs Go only)
	@./scripts/setup.sh go
	@./scripts/build.sh

demo: build ## Backfill three mailboxes from a fake Google beside live traffic (needs Go only)
	@echo "==> bin/headroom demo"
	@./bin/headroom demo

test: ## Run all tests, with a redis-server of their own
	@./scripts/setup.sh go redis-server
	@./scripts/test.sh

test-race: ## Run all tests under the race detector, whole processes too
	@./scripts/setup.sh go cc redis-server
	@./scripts/test.sh --race

lint: ## Check format, imports, vet, staticcheck, errors, comments, spelling and known vulnerabilities
	@./scripts/setup.sh go
	@./scripts/lint.sh

bench: build ## Run every benchmark that bin/headroom has, one after the other
	@./scripts/setup.sh redis-server
	@./scripts/bench.sh

release: ## Build archives and checksums of a tagged commit into dist/
	@./scripts/setup.sh go
	@./scripts/release.sh

clean: ## Remove what was built
	rm -rf bin dist
