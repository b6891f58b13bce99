#!/usr/bin/env bash
# Every check there is: vet, linter, known vulnerabilities, and all tests with the race detector on
# one private pair of servers. The seeds of the fuzzers run as tests; make fuzz searches on. The
# servers end with it, also when it fails or is interrupted.
#
#   PACKAGES='./smpp/...'   tests these only
#   TESTFLAGS='-v -run X'   goes to go test as it is
set -euo pipefail
cd "$(dirname "$0")/.."

assignments=$(scripts/deps.sh test) # installs what is missing; servers.sh finds it again
: "$assignments"
scripts/tools.sh # says what it cannot have; with CI=true that is a failure
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
# A test that fails does not keep the others from being run: all that fails is
# seen at once.
failed=0
# These play whole gateways against the clock: each has the machine to itself.
whole='./dispatcher ./internal/stories'
rest=${PACKAGES:-$(go list ./... | grep -v -e '/dispatcher$' -e '/internal/stories$')}
# shellcheck disable=SC2086 # all are lists of words
step go test -race -timeout 15m ${TESTFLAGS:-} $rest || failed=1
if [ -z "${PACKAGES:-}" ]; then
	# shellcheck disable=SC2086
	step go test -race -timeout 15m -p 1 ${TESTFLAGS:-} $whole || failed=1
fi
exit "$failed"
