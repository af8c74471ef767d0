# Each target is a script in scripts/. `make` lists them.
SHELL := bash
.PHONY: help run dev demo check test hooks fmt lint build release reproduce bench screens soak fuzz prove schemathesis deny setup clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18

run: ## build, then start a server, an agent, and a small training job on this machine (HOST, PORT, DATA_DIR)
	@scripts/run

dev: setup ## start the server, and rebuild and restart it on every change
	@scripts/dev

demo: setup ## start a server with six hosts and two hundred jobs, to work on pages
	@scripts/build fast
	@scripts/demo

check: setup ## format, clippy, types, tidy, and the library's tests: before each commit
	@scripts/check

test: ## run all tests; scripts/test LAYER... runs some
	@scripts/test

hooks: ## turn on the git hooks of scripts/hooks
	@git config core.hooksPath scripts/hooks

fmt: setup ## format the Rust code
	@. scripts/env && cargo fmt

lint: ## run the format check, clippy for every feature set, and the type check of the page tests
	@scripts/test format clippy types

build: setup ## build dist/simpletuner and dist/simpletuner-worker
	@scripts/build

release: setup ## build what is published into dist/: programs, SBOM, and SHA256SUMS
	@scripts/release

reproduce: setup ## build twice in two directories and compare bit for bit
	@scripts/reproduce

bench: build ## run the benchmarks
	@scripts/bench/run

screens: setup ## take the pictures of docs/screens
	@scripts/build fast
	@scripts/screens

soak: ## run the fleet tests on both databases, 20 rounds
	@scripts/soak

fuzz: ## run each fuzz target for ten minutes (SECONDS=600)
	@scripts/fuzz $(SECONDS)

prove: ## check the protocol's model, simulate fleets with faults, and crash the programs at their writes (15 minutes)
	@scripts/prove

schemathesis: setup ## test the API with requests generated from its description
	@scripts/schemathesis

deny: ## check dependencies: licenses, sources, versions, advisories
	@scripts/deny

setup: ## install the compiler and tools that are missing
	@scripts/setup

clean: ## remove what was built in this checkout (the shared cache stays)
	rm -rf dist end2end/test-results end2end/screenshots
