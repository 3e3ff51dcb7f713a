# `make` lists what there is. Everything that takes more than a line is a script,
# so that it can be read, and run without make.

.DEFAULT_GOAL := help
.PHONY: help build demo test lint bench clean

help: ## List these targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build bin/headroom (needs Go only)
	@./scripts/setup.sh go
	@./scripts/build.sh

demo: build ## Backfill three mailboxes from a fake Google beside live traffic (needs Go only)
	@echo "==> bin/headroom demo"
	@./bin/headroom demo

test: ## Run all tests, most under the race detector, with a redis-server of their own
	@./scripts/setup.sh go cc redis-server
	@./scripts/test.sh

lint: ## Check format, vet, staticcheck, and that no file names a path of somebody's machine
	@./scripts/setup.sh go
	@./scripts/lint.sh

bench: build ## Run every benchmark that bin/headroom has, one after the other
	@./scripts/setup.sh redis-server
	@./scripts/bench.sh

clean: ## Remove what was built
	rm -rf bin
