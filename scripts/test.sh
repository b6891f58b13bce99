#!/usr/bin/env bash
# Every check: linter, known vulnerabilities, and the tests with the race detector
# on one private pair of servers. The seeds of the fuzzers run as tests; make fuzz
# searches on. The servers end with it, also when it fails or is interrupted.
#
#   test.sh        leaves out what takes long (testenv.Long)
#   test.sh long   leaves out nothing
#
#   PACKAGES='./smpp/...'   tests these only
#   TESTFLAGS='-v -run X'   goes to go test as it is
#   PREVIOUS=v1.2.0         the release from which the story of an upgrade begins
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
assignments=$(scripts/deps.sh test) # installs what is missing; servers.sh finds it again
: "$assignments"
scripts/tools.sh # names what it cannot have; with CI=true that is a failure
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

# Runs a step in a process group of its own, so that all of it can be ended.
set -m
step() {
	local code=0
	"$@" </dev/null &
	child=$!
	wait "$child" || code=$?
	child=
	return "$code"
}

step scripts/lint.sh
step scripts/vulnerabilities.sh
export FSYNC=off # no test crashes the machine
step scripts/servers.sh start "$dir"
# shellcheck source=/dev/null
. "$dir/servers.env"
export INTUMWA_TEST_DATABASE_URL=$DATABASE_URL INTUMWA_TEST_REDIS_URL=$REDIS_URL
export GORACE=atexit_sleep_ms=0 # a test binary would sleep for a second when it ends
# The rooms that take longest start first. All tests that fail are seen, because a
# failure ends its room only. The linter has run go vet.
# shellcheck disable=SC2086 # both are lists of words
step go test -race -vet=off -p "$(($(getconf _NPROCESSORS_ONLN) + 1))" -timeout "$timeout" ${TESTFLAGS:-} \
	${PACKAGES:-./internal/stories ./dispatcher ./dashboard ./cmd/intumwa ./api ./...}
