#!/usr/bin/env bash
# Runs every fuzz test of the module for FUZZTIME each (default 30s), or those
# that match the pattern $1. Findings stay under testdata/fuzz: commit them with
# the fix.
set -euo pipefail
cd "$(dirname "$0")/.."

pattern=${1:-.}
time=${FUZZTIME:-30s}
output=$(mktemp)
trap 'rm -f "$output"' EXIT

# Whether fuzzer $1 found nothing and failed only at its deadline, as the go
# command before 1.27 sometimes does (https://go.dev/issue/75804).
only_late() {
	! grep -q 'Failing input' "$output" &&
		[ "$(sed -n "/^--- FAIL: $1 (/,\$p" "$output" | sed -n '2,3p')" = $'    context deadline exceeded\nFAIL' ]
}

fuzz() {
	local name=$1 dir=$2 code
	for _ in 1 2 3; do
		code=0
		go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" "$dir" 2>&1 | tee "$output" || code=$?
		if [ "$code" -eq 0 ] || ! only_late "$name"; then
			break
		fi
		echo "fuzz: $name found nothing and failed at the end of its time (https://go.dev/issue/75804); once more"
	done
	return "$code"
}

mapfile -t found < <(grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sort)
for line in "${found[@]}"; do
	file=${line%%:*}
	name=${line##*func }
	[[ $name =~ $pattern ]] || continue
	echo "== $name in $(dirname "$file"), $time"
	fuzz "$name" "$(dirname "$file")"
done
