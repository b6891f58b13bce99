#!/usr/bin/env bash
# Runs every fuzz test of the module for FUZZTIME each (30s when not given), or
# those whose name matches the pattern $1. What a fuzzer finds stays under
# testdata/fuzz: commit it with the repair.
set -euo pipefail
cd "$(dirname "$0")/.."

pattern=${1:-.}
time=${FUZZTIME:-30s}

mapfile -t found < <(grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sort)
for line in "${found[@]}"; do
	file=${line%%:*}
	name=${line##*func }
	[[ $name =~ $pattern ]] || continue
	echo "== $name in $(dirname "$file"), $time"
	go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" "$(dirname "$file")"
done
