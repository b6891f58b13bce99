#!/usr/bin/env bash
# Finds flaky tests: it runs every test many times with the race detector, in
# another order each time, while all processors are busy. It prints how often
# each package ran and each test failed, keeps the output of failed runs in a
# folder that it names, and exits with 1 after a failure.
#
# It runs all packages in rounds until FLAKYTIME is over. A quick package runs
# several times in a round, for TURN together, at most COUNT times.
#
#   FLAKYTIME=1h   duration (s, m, h); a started run finishes
#   COUNT=20       runs per round at most; 1 treats all packages alike
#   TURN=20s       minimum duration of a package's turn
#   BURNERS=N      busy loops; default: one per processor
#   PACKAGES='./smpp/...'   these packages only
#   RUN=TestX      these tests only
#   KEEP=FOLDER    folder for failures (bin/flaky)
set -euo pipefail
cd "$(dirname "$0")/.."

seconds() {
	case $1 in
	*[!0-9smh]* | '' | [smh]*) echo "flaky: $1 is no length of time (90s, 20m, 1h)" >&2 && return 1 ;;
	*h) echo $((${1%h} * 3600)) ;;
	*m) echo $((${1%m} * 60)) ;;
	*) echo "${1%s}" ;;
	esac
}
budget=$(seconds "${FLAKYTIME:-1h}")
turn=$(seconds "${TURN:-20s}")
most=${COUNT:-20}
burners=${BURNERS:-$(getconf _NPROCESSORS_ONLN)}
keep=${KEEP:-bin/flaky}

scripts/tools.sh
dir=$(mktemp -d "${TMPDIR:-/tmp}/intumwa-flaky-XXXXXXXX") # of the servers, too
mkdir "$dir/tests"
results=$dir/tests/results   # a line per run: package, 1 if it failed, seconds
failures=$dir/tests/failures # a line per failed test of a run: package, test
touch "$results" "$failures"
child=
burning=()

report() {
	[ -s "$results" ] || return 0
	echo
	awk '{ runs[$1]++; bad[$1] += $2; time[$1] += $3; all++ }
		END { printf "%6s %7s %8s  %s\n", "runs", "failed", "seconds", "room"
			for (p in runs) printf "%6d %7d %8d  %s\n", runs[p], bad[p], time[p], p | "sort -k4"
			close("sort -k4") }' "$results"
	if [ ! -s "$failures" ]; then
		echo "No test failed."
		return 0
	fi
	echo
	awk 'NR == FNR { runs[$1]++; next } { failed[$0]++ }
		END { printf "%6s %7s  %s\n", "failed", "of runs", "test"
			for (t in failed) { split(t, w, " "); printf "%6d %7d  %s\n", failed[t], runs[w[1]], t | "sort -rn" } }' \
		"$results" "$failures"
	echo "Their output is in $keep."
	return 1
}

# shellcheck disable=SC2317 # the trap calls it
finish() {
	local code=$?
	trap '' INT TERM HUP
	if [ -n "$child" ]; then
		kill -TERM -- "-$child" 2>/dev/null || true
		wait "$child" 2>/dev/null || true
	fi
	[ ${#burning[@]} -eq 0 ] || kill "${burning[@]}" 2>/dev/null || true
	report || code=1
	scripts/servers.sh remove "$dir" || code=1
	exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Each in a process group of its own, so that all of it can be ended.
set -m
step() {
	local code=0
	"$@" </dev/null &
	child=$!
	wait "$child" || code=$?
	child=
	return "$code"
}

# Computes until it is terminated, this script is gone or its time is over.
burn() {
	local i end=$((SECONDS + budget + 1800))
	while kill -0 $$ 2>/dev/null && [ "$SECONDS" -lt "$end" ]; do
		for ((i = 0; i < 100000; i++)); do :; done
	done
}

# Lists what failed in a run of package $1 with output $2: failed tests, else
# those running when the binary ended, else the package itself.
failed_tests() {
	local names name
	names=$(sed -nE 's/^ *--- FAIL: ([^ ]+) .*/\1/p' "$2" | sort -u)
	[ -n "$names" ] || names=$(sed -nE '/^panic: test timed out/,/^$/s/^\t+(Test[^ ]+|Fuzz[^ ]+) .*/\1/p' "$2" | sort -u)
	[ -n "$names" ] || names='(no test is named)'
	while read -r name; do printf '%s %s\n' "$1" "$name"; done <<<"$names"
}

# Runs the binary of package $1 once; adds to results and failures.
run() {
	local package=$1 folder=$2 binary=$3 began=$SECONDS bad=0 file
	cd "$folder"
	step "$binary" -test.shuffle=on -test.timeout=20m ${RUN:+-test.run "$RUN"} >"$dir/tests/output" 2>&1 || bad=1
	cd "$root"
	printf '%s %d %d\n' "$package" "$bad" $((SECONDS - began)) >>"$results"
	[ "$bad" -eq 1 ] || return 0
	mkdir -p "$keep"
	file=$keep/${package//\//_}.$(date +%Y%m%d-%H%M%S).$((++kept)).log
	mv "$dir/tests/output" "$file"
	failed_tests "$package" "$file" | tee -a "$failures"
}

root=$PWD kept=0
packages=() folders=()
echo "Compiling the tests."
# shellcheck disable=SC2086 # PACKAGES is a list of words
while read -r package folder; do
	go test -race -c -o "$dir/tests/${package//\//_}" "$package" </dev/null >/dev/null
	[ -x "$dir/tests/${package//\//_}" ] || continue # no tests
	packages+=("$package") folders+=("$folder")
done < <(go list -f '{{.ImportPath}} {{.Dir}}' ${PACKAGES:-./...})
[ ${#packages[@]} -gt 0 ] || { echo "flaky: there are no tests in ${PACKAGES:-./...}" >&2; exit 1; }

if [[ " ${packages[*]} " == */internal/stories\ * ]]; then # else every run of them builds a gateway
	go build -race -o "$dir/tests/gateway" ./cmd/intumwa
	export INTUMWA_STORIES_BINARY=$dir/tests/gateway
fi

export FSYNC=off # no test crashes the machine
step scripts/servers.sh start "$dir"
# shellcheck source=/dev/null
. "$dir/servers.env"
export INTUMWA_TEST_DATABASE_URL=$DATABASE_URL INTUMWA_TEST_REDIS_URL=$REDIS_URL
for ((i = 0; i < burners; i++)); do
	burn &
	burning+=($!)
	disown
done
began=$SECONDS
over() { [ $((SECONDS - began)) -ge "$budget" ]; }

round=0
until over; do
	round=$((round + 1))
	echo "Round $round, after $((SECONDS - began)) s."
	for i in $(shuf -i "0-$((${#packages[@]} - 1))"); do
		start=$SECONDS
		for ((n = 0; n < most; n++)); do
			! over || break 2
			run "${packages[i]}" "${folders[i]}" "$dir/tests/${packages[i]//\//_}"
			[ $((SECONDS - start)) -lt "$turn" ] || break
		done
	done
done
echo "$round rounds in $((SECONDS - began)) s, with $burners processes computing beside."
