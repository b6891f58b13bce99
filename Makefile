# Commands for developers. `make help` lists them.

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
RUN_DIR ?= .run
RUNS ?= 3
OUT ?= bin/bench.json
PAIRS ?= 5
# The previous release, from which `make test-all` upgrades: the newest tag below this commit. It is empty before the
# first release; each process is then replaced with the same build.
PREVIOUS ?= $(shell git describe --tags --abbrev=0 --match 'v[0-9]*' HEAD^ 2>/dev/null)
NEW ?= $(OUT)
# The profile by which the compiler optimizes. What operators get and what is measured has one; with it, everything is
# compiled again, which takes minutes.
PROFILE ?= off

.DEFAULT_GOAL := help
.PHONY: help build release run test test-all lint fuzz bench bench-compare drill flaky clean

help: ## list what there is
	@sed -nE 's/^([a-z][a-z-]*):[^#]*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

build: ## compile bin/intumwa, and bin/intumwa-dev with the carrier simulator
	@mkdir -p bin
	CGO_ENABLED=0 go build -tags nomsgpack -trimpath -pgo='$(PROFILE)' -ldflags '-s -w -X main.version=$(VERSION)' -o bin/ ./cmd/intumwa ./cmd/intumwa-dev

release bench: PROFILE := cmd/intumwa/release.pgo
release: build ## what operators get, in bin/: an archive, a .deb, an .rpm, the SBOM, and their SHA-256
	@case '$(VERSION)' in *-*) ;; v*) grep -q '^## $(VERSION) ' CHANGELOG.md || { echo 'CHANGELOG.md has no section $(VERSION)'; exit 1; } ;; esac
	@exec scripts/release.sh '$(VERSION)' bin/intumwa bin

run: build ## start everything here: servers, three simulated carriers, the gateway, a demo company
	@RUN_DIR='$(RUN_DIR)' exec scripts/run.sh

test: ## lint, known vulnerabilities and the tests, with -race, on servers of its own (PACKAGES=./smpp/... TESTFLAGS=-v)
	@exec scripts/test.sh

test-all: ## make test with what takes long: failovers, restores, attacks, a soak of ten minutes, an upgrade from PREVIOUS
	@PREVIOUS='$(PREVIOUS)' exec scripts/test.sh long

lint: ## the pinned golangci-lint
	@exec scripts/lint.sh

fuzz: ## every fuzz test for FUZZTIME (30s) each
	@exec scripts/fuzz.sh

bench: build ## what it carries a second, and where its work goes (BENCH=singles,bulk or all RUNS=3 OUT=bin/bench.json BENCHFLAGS=-help)
	@go run ./tools/bench -scenarios '$(BENCH)' -runs '$(RUNS)' -o '$(OUT)' $(BENCHFLAGS)

bench-compare: build ## this tree against another, built, by turns (OLD=../older PAIRS=5 BENCH=singles); or two reports (OLD=before.json NEW=bin/bench.json)
	@case '$(OLD)' in *.json) exec go run ./tools/bench -compare '$(OLD)' '$(NEW)';; esac; \
	for pair in $$(seq $(PAIRS)); do for tree in '$(OLD)' .; do \
		(cd "$$tree" && go run ./tools/bench -scenarios '$(BENCH)' -runs 1 -o bin/pair-$$pair.json $(BENCHFLAGS) >&2) || exit 1; \
	done; done; \
	go run ./tools/bench -compare $$(seq -f '$(OLD)/bin/pair-%g.json' $(PAIRS)) $$(seq -f 'bin/pair-%g.json' $(PAIRS))

drill: build ## a night's faults before a real Prometheus: does the right alert fire? (NORMAL=30s ONLY=receipts)
	@exec scripts/drill.sh

flaky: ## hunt tests that fail now and then: all of them, again and again, on a busy machine (FLAKYTIME=1h PACKAGES=./internal/queue RUN=TestWatermarks)
	@exec scripts/flaky.sh

clean: ## delete what was built, and what `make run` keeps in .run
	@if [ -d '$(RUN_DIR)' ]; then scripts/servers.sh remove '$(RUN_DIR)'; fi
	rm -rf bin .bin
