#!/usr/bin/env bash
# Builds an earlier commit's gateway with the race detector for the upgrade story,
# and prints its path: .bin/previous-COMMIT. The build is kept. It fetches nothing:
# git has the commit, Go's cache the modules.
#
#   previous.sh v1.2.0   a tag or a commit
set -euo pipefail
cd "$(dirname "$0")/.."

if ! commit=$(git rev-parse --verify --quiet "${1:?which commit?}^{commit}"); then
	echo "previous.sh: this clone does not have $1, the release before, so no upgrade from it can be played." >&2
	echo "  Fetch it (git fetch --unshallow --tags), or name another: make test-all PREVIOUS=v1.2.0" >&2
	exit 1
fi
binary=$PWD/.bin/previous-${commit:0:12}
if [ ! -x "$binary" ]; then
	echo "Building the gateway of $1, once." >&2
	dir=$(mktemp -d "${TMPDIR:-/tmp}/intumwa-previous-XXXXXXXX")
	trap 'rm -rf "$dir"' EXIT
	git archive "$commit" | tar -x -C "$dir"
	mkdir -p .bin
	(cd "$dir" && GOFLAGS='' GOPROXY=off go build -race -ldflags "-X main.version=$1" -o "$binary.new" ./cmd/intumwa) >&2
	mv "$binary.new" "$binary"
fi
printf '%s\n' "$binary"
