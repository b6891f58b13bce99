#!/usr/bin/env bash
# Runs every fuzz test of the module for FUZZTIME each (30s when not given), or
# those whose name matches the pattern $1. What a fuzzer finds stays under
# testdata/fuzz: commit it with the repair.
set -euo pipefail
cd "$(dirname "$0")/.."

pattern=${1:-.}
time=${FUZZTIME:-30s}
said=$(mktemp)
trap 'rm -f "$said"' EXIT

# Whether fuzzer $1 found nothing and failed only because its time was over: the
# go command before 1.27 does so now and then (https://go.dev/issue/75804).
only_late() {
	! grep -q 'Failing input' "$said" &&
		[ "$(sed -n "/^--- FAIL: $1 (/,\$p" "$said" | sed -n '2,3p')" = $'    context deadline exceeded\nFAIL' ]
}

fuzz() {
	local name=$1 dir=$2 code
	for _ in 1 2 3; do
		code=0
		go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" "$dir" 2>&1 | tee "$said" || code=$?
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
