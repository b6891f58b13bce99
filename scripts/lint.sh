#!/usr/bin/env bash
# golangci-lint over everything, which runs the analyzers of go vet too. It is built
# once, at the version below, into .bin.
set -euo pipefail
cd "$(dirname "$0")/.."

version=v2.15.0
linter=.bin/golangci-lint-$version

if [ ! -x "$linter" ]; then
	echo "Building golangci-lint $version, once (a minute or two)."
	folder=$(mktemp -d)
	trap 'rm -rf "$folder"' EXIT
	GOFLAGS='' GOBIN=$folder go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$version"
	mkdir -p .bin
	mv "$folder/golangci-lint" "$linter"
fi

"$linter" run --allow-parallel-runners ./...
