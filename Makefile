# Everything a developer does with Intumwa. `make help` lists it.

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
RUN_DIR ?= .run
RUNS ?= 3
OUT ?= bin/bench.json
# The release before this one, from which `make fleet` upgrades: the newest tag below this commit. Before the first
# release it is empty, and `make fleet` replaces each process with the same build.
PREVIOUS ?= $(shell git describe --tags --abbrev=0 --match 'v[0-9]*' HEAD^ 2>/dev/null)
NEW ?= $(OUT)

.DEFAULT_GOAL := help
.PHONY: help build run test lint fuzz bench bench-compare attack chaos fleet soak drill flaky clean

help: ## list what there is
	@sed -nE 's/^([a-z][a-z-]*):[^#]*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

build: ## compile bin/intumwa, and bin/intumwa-dev with the carrier simulator
	@mkdir -p bin
	go build -trimpath -ldflags '-X main.version=$(VERSION)' -o bin/ ./cmd/intumwa ./cmd/intumwa-dev

run: build ## start everything here: servers, three simulated carriers, the gateway, a demo company
	@RUN_DIR='$(RUN_DIR)' exec scripts/run.sh

test: ## vet, lint, known vulnerabilities and every test, with -race, on servers of its own (PACKAGES=./smpp/... TESTFLAGS=-v)
	@exec scripts/test.sh

lint: ## go vet and the pinned golangci-lint
	@exec scripts/lint.sh

fuzz: ## every fuzz test for FUZZTIME (30s) each
	@exec scripts/fuzz.sh

bench: build ## what it carries a second, and where its work goes (BENCH=singles,bulk or all RUNS=3 OUT=bin/bench.json BENCHFLAGS=-help)
	@go run ./tools/bench -scenarios '$(BENCH)' -runs '$(RUNS)' -o '$(OUT)' $(BENCHFLAGS)

bench-compare: ## two reports of make bench, figure by figure (OLD=before.json NEW=bin/bench.json)
	@go run ./tools/bench -compare '$(OLD)' '$(NEW)'

attack: build ## what hostile people and neighbours tried, played again in short (INTUMWA_CHAOS=1: at full length)
	@exec scripts/stories.sh attack

chaos: ## the stories that kill, flush and drop, many times over
	@exec scripts/stories.sh chaos

fleet: ## servers that fail over, cut networks, wrong clocks, an upgrade from PREVIOUS, under load; what more processes cost
	@PREVIOUS='$(PREVIOUS)' exec scripts/stories.sh fleet
ifeq (,$(findstring -run,$(TESTFLAGS))) # no stories were chosen
	@$(MAKE) --no-print-directory bench BENCH=fleet OUT=bin/fleet.json BENCHFLAGS='-limit 10m'
endif

soak: build ## the long run, for SOAK (10m)
	@exec scripts/stories.sh soak

drill: build ## a night's faults before a real Prometheus: does the right alert fire? (NORMAL=30s ONLY=receipts)
	@exec scripts/drill.sh

flaky: ## hunt tests that fail now and then: all of them, again and again, on a busy machine (FLAKYTIME=1h PACKAGES=./queue RUN=TestWatermarks)
	@exec scripts/flaky.sh

clean: ## delete what was built, and what `make run` keeps in .run
	@if [ -d '$(RUN_DIR)' ]; then scripts/servers.sh remove '$(RUN_DIR)'; fi
	rm -rf bin .bin
