#!/usr/bin/env bash
# Runs golangci-lint, which includes go vet. Its version is in
# internal/testenv/tools.txt.
set -euo pipefail
cd "$(dirname "$0")/.."

read -r _ source _ < <(grep '^golangci-lint ' internal/testenv/tools.txt)
program=.bin/golangci-lint-${source##*@}
[ -x "$program" ] || scripts/tools.sh
# As test.sh, so that both share what they compile.
GOFLAGS="${GOFLAGS:-} -trimpath" "$program" run --allow-parallel-runners ./...
