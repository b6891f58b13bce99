#!/usr/bin/env bash
# Provides the tools of internal/testenv/tools.txt: it installs Debian packages if
# possible and builds Go programs into .bin. Without one it names what goes
# unchecked, and fails with CI=true.
set -euo pipefail
cd "$(dirname "$0")/.."

# The path in .bin, NAME-VERSION, of the Go program $1 of module@version $2.
build() {
	local module=${2%@*} version=${2##*@} folder program
	[ ! -x ".bin/$1-$version" ] || return 0
	echo "Building $1 $version, once." >&2
	folder=$(mktemp -d) || return 1
	# The flags of make build, so that they share the standard library.
	if ! CGO_ENABLED=0 GOFLAGS=-trimpath GOBIN=$folder go install "$module@$version" </dev/null >&2; then
		rm -rf "$folder"
		return 1
	fi
	program=("$folder"/*)
	mkdir -p .bin
	mv "${program[0]}" ".bin/$1-$version"
	rm -rf "$folder"
}

lines=() packaged=() failed=()
while read -r name source what; do
	case $name in '' | '#'*) continue ;; esac
	lines+=("$name $source $what")
	case $source in
	go:*) build "$name" "${source#go:}" || failed+=("$name: $what") ;;
	*) packaged+=("$name" "$source") ;;
	esac
done <internal/testenv/tools.txt
if ! scripts/package.sh need "${packaged[@]}"; then
	for line in "${lines[@]}"; do
		read -r name source what <<<"$line"
		case $source in
		go:*) ;;
		*) scripts/package.sh has "$name" || failed+=("$name: $what") ;;
		esac
	done
fi
[ ${#failed[@]} -gt 0 ] || exit 0
if [ "${CI:-}" = true ]; then
	printf 'tools: missing, and with CI=true nothing is left out: %s\n' "${failed[@]}" >&2
	exit 1
fi
printf 'tools: left out, because it is missing: %s\n' "${failed[@]}" >&2
