# Thin: each target is a script in scripts/, which says what it does and why. `make` alone lists them.
SHELL := bash
.PHONY: help run test build release reproduce bench screens schemathesis soak deny fuzz setup fmt lint dev clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

run: ## build, then server, agent and a small training job on this machine (HOST, PORT, DATA_DIR)
	@scripts/run

test: ## everything; scripts/test LAYER... runs some of it
	@scripts/test

build: setup ## dist/simpletuner and dist/simpletuner-worker
	@scripts/build

release: setup ## what is published: the programs, what is in them (SBOM), and SHA256SUMS, in dist/
	@scripts/release

reproduce: setup ## builds twice in two directories, and compares bit for bit
	@scripts/reproduce

bench: build ## benchmarks
	@test -x scripts/bench/run || { echo "there are no benchmarks yet"; exit 1; }
	@scripts/bench/run

screens: build ## takes the pictures of the main pages that stand in docs/screens
	@scripts/screens

schemathesis: setup ## asks the API whatever its description allows, and holds the answers against it
	@scripts/schemathesis

soak: ## the fleet tests again and again on both databases, 20 rounds
	@scripts/soak

deny: ## what comes from elsewhere: licences, sources, versions, advisories
	@scripts/deny

fuzz: ## bytes that nobody thought of for all that reads a stranger's, ten minutes each (SECONDS=600)
	@scripts/fuzz $(SECONDS)

setup: ## compiler and tools; skips what is present
	@scripts/setup

fmt: setup ## format the Rust code
	@. scripts/env && cargo fmt

lint: ## formatting, clippy for every feature set, types of the page tests
	@scripts/test format clippy types

dev: setup ## rebuild and restart on every change
	@scripts/dev

clean: ## what was built in this checkout (the shared cache stays)
	rm -rf dist end2end/test-results end2end/screenshots
