# The two commands are `make run` and `make test`; everything else is for working on Tidepool.
SHELL := /bin/bash
.DEFAULT_GOAL := help
BENCH_AREAS := core
bin := build/release/apps

.PHONY: help deps build run test sanitize lint format docs bench fuzz clean $(addprefix bench-,$(BENCH_AREAS))

help: ## this list
	@grep -hE '^[a-z%-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

deps: ## install the Debian packages that are missing
	@scripts/deps.sh

build: deps ## build everything (LTO=ON: with link-time optimisation)
	@scripts/build.sh release

run: deps ## install, build and start a node with conf/local.yaml
	@scripts/build.sh release tidepool tidepoolctl
	@scripts/run.sh

test: build ## install, build and run all tests
	@scripts/test.sh release

sanitize: deps ## all tests under the address and undefined-behaviour sanitizers
	@scripts/build.sh sanitize
	@scripts/test.sh sanitize

lint: deps ## clang-format, clang-tidy, self-contained headers, our own rules
	@scripts/lint.sh

format: deps ## rewrite the sources as clang-format wants them
	@git ls-files '*.cc' '*.hh' | xargs clang-format-19 -i

docs: build ## print docs/CONFIG.md and docs/CONCURRENCY.md from the code
	@$(bin)/ctl/tidepoolctl config docs > docs/CONFIG.md
	@$(bin)/node/tidepool --queues > docs/CONCURRENCY.md

bench: $(addprefix bench-,$(BENCH_AREAS)) ## all benchmarks, side by side with their peers

bench-core: build ## mailbox against bare submit_to, HTTP against nginx, start-up
	@perf/bench_core.sh

fuzz: deps ## each fuzz target for FUZZ_SECONDS (30)
	@scripts/build.sh fuzz
	@scripts/fuzz.sh

clean: ## remove the build tree (the cached Seastar stays)
	@rm -rf build
