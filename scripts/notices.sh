#!/usr/bin/env bash
# Prints the licences of everything linked into the program: Go itself, and each module with the licence and
# notice files of its root and of the linked packages' folders. Fails if a module has none.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

echo "The program intumwa contains the following software, each under the licence that follows its name."
section() {
	printf '\n%s\n%s\n' "$(printf '=%.0s' {1..80})" "$1"
}
section "The Go programming language and its standard library"
cat "$(go env GOROOT)/LICENSE"

# MODULE VERSION ROOT FOLDER of each linked package.
linked=$(CGO_ENABLED=0 go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}} {{$.Dir}}{{end}}{{end}}' ./cmd/intumwa | sort -u)
shown='' printed=''
while read -r module version root folder; do
	if [ "$module" != "$shown" ]; then
		section "$module $version"
		shown=$module
		found=$(find "$root" "$root/licenses" -maxdepth 1 -type f \( -iname 'licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' -o -iname 'patents*' \) 2>/dev/null | sort -u || true)
		[ -n "$found" ] || { echo "$module has no licence" >&2; exit 1; }
		while read -r file; do
			printf '\n%s:\n\n' "${file#"$root"/}"
			cat "$file"
		done <<<"$found"
	fi
	while [ "$folder" != "$root" ]; do # code copied from elsewhere has its licence beside it
		for file in "$folder"/LICEN[CS]E* "$folder"/COPYING* "$folder"/NOTICE*; do
			if [ -f "$file" ] && [[ $printed != *"|$file|"* ]]; then
				printed+="|$file|"
				printf '\n%s:\n\n' "${file#"$root"/}"
				cat "$file"
			fi
		done
		folder=$(dirname "$folder")
	done
done <<<"$linked"
