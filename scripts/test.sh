#!/usr/bin/env bash
# All checks: the linter, known vulnerabilities, and the tests with the race
# detector on one private pair of servers. The fuzzers' seeds run as tests; make
# fuzz searches further. The servers end with it, also after a failure or Ctrl-C.
#
#   test.sh        without long tests (testenv.Long)
#   test.sh long   all tests
#
#   PACKAGES='./smpp/...'   only these
#   TESTFLAGS='-v -run X'   passed to go test
#   PREVIOUS=v1.2.0         the release that the upgrade story starts from
#   LOCK_ORDER=/tmp/locks   keeps there in which order transactions locked tables
set -euo pipefail
cd "$(dirname "$0")/.."

timeout=15m
if [ "${1:-}" = long ]; then
	export INTUMWA_TEST_LONG=1
	timeout=3h
fi
if [ -n "${PREVIOUS:-}" ]; then
	INTUMWA_STORIES_PREVIOUS=$(scripts/previous.sh "$PREVIOUS")
	export INTUMWA_STORIES_PREVIOUS
fi
assignments=$(scripts/deps.sh test) # installs missing packages, which servers.sh then finds
: "$assignments"
scripts/tools.sh # names missing tools, and fails with CI=true
dir=$(mktemp -d "${TMPDIR:-/tmp}/intumwa-test-XXXXXXXX")
child=

# shellcheck disable=SC2317 # the trap calls it
finish() {
	trap '' INT TERM HUP
	if [ -n "$child" ]; then
		kill -TERM -- "-$child" 2>/dev/null || true
		wait "$child" 2>/dev/null || true
	fi
	scripts/servers.sh remove "$dir"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Runs a step in its own process group, so that all of it can be ended.
set -m
step() {
	local code=0
	"$@" </dev/null &
	child=$!
	wait "$child" || code=$?
	child=
	return "$code"
}

# A clone in another folder shares the build cache: no compiled package contains its folder.
export GOFLAGS="${GOFLAGS:-} -trimpath -tags=lockorder"
step scripts/lint.sh
step scripts/vulnerabilities.sh
# The longest start first.
packages=${PACKAGES:-./dashboard ./internal/stories ./cmd/intumwa ./dispatcher ./webhooks ./internal/postgres \
	./tools/bench ./smpp ./smppserver ./inbound/switchboard ./internal/notices ./internal/queue ./internal/throttle \
	./internal/testenv ./api ./intake ./messages ./deployments ./...}
# Everything is compiled before the first test runs, the gateway of the stories too: the compiler takes all cores, and
# the time limits of tests are not made for that.
# shellcheck disable=SC2086 # a list of words
step go list -race -test -deps -export $packages >/dev/null
case $packages in *stories*) step go build -o /dev/null ./cmd/intumwa ;; esac
export FSYNC=off # no test crashes the machine
step scripts/servers.sh start "$dir"
# shellcheck source=/dev/null
. "$dir/servers.env"
export INTUMWA_TEST_DATABASE_URL=$DATABASE_URL INTUMWA_TEST_REDIS_URL=$REDIS_URL
export LOCK_ORDER=${LOCK_ORDER:-$dir/lock-order}
mkdir -p "$LOCK_ORDER"
export GORACE=atexit_sleep_ms=0 # otherwise a test binary sleeps for a second at exit
export GOGC=300                 # as the gateway itself does; a tenth less processor
# A failure ends only its package, so all failures are seen. The linter has run go vet.
# shellcheck disable=SC2086 # both are lists of words
step go test -race -vet=off -ldflags='-s -w' -p "$(getconf _NPROCESSORS_ONLN)" -timeout "$timeout" ${TESTFLAGS:-} $packages
whole=true
[ -z "${PACKAGES:-}${TESTFLAGS:-}" ] || whole=false
step go test -race -vet=off -ldflags='-s -w' -count=1 ./internal/lockorder -run '^TestOrder$' -args -found="$LOCK_ORDER" -whole="$whole"
