#!/usr/bin/env bash
# `make drill`: a real Prometheus watches a real gateway while faults are
# played; each must fire its alert within two minutes and nothing else may page.
# It takes about half an hour, with ten minutes of normal load.
#
#   NORMAL=30s     a shorter time of normal load
#   PROGRAM=FILE   another gateway than bin/intumwa
#   ONLY=receipts  only the faults whose name contains this
#
# PostgreSQL's files are on a small filesystem that one fault fills. It is mounted
# in a private namespace; without permission for that the drill fails.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ -z "${INTUMWA_TEST_DISK:-}" ]; then
	export INTUMWA_TEST_DISK=768m
	apart=(unshare --mount)
	[ "$(id -u)" -eq 0 ] || apart=(unshare --user --map-current-user --keep-caps --mount)
	"${apart[@]}" mount -t tmpfs -o size=1m tmpfs /mnt || {
		echo "drill: no filesystem of its own can be mounted here (${apart[*]}), which the full disk needs; INTUMWA_TEST_DISK=none leaves that fault out" >&2
		exit 1
	}
	exec "${apart[@]}" "scripts/$(basename "$0")"
fi
size=$INTUMWA_TEST_DISK disk=true
if [ "$size" = none ]; then
	size='' disk=false
fi

program=${PROGRAM:-bin/intumwa}
[ -x "$program" ] || { echo "drill: there is no $program: run make build" >&2; exit 1; }
[ -x bin/intumwa-dev ] || { echo "drill: there is no bin/intumwa-dev: run make build" >&2; exit 1; }
scripts/package.sh need prometheus prometheus

for name in "${!INTUMWA_@}"; do # the drill's gateway uses only its own configuration
	unset "$name"
done
dir=$(mktemp -d "${TMPDIR:-/tmp}/intumwa-drill-XXXXXXXX")
child=

# shellcheck disable=SC2317 # the trap calls it
finish() {
	local code=$?
	trap '' INT TERM HUP
	if [ -n "$child" ]; then
		kill -TERM "$child" 2>/dev/null || true
		wait "$child" 2>/dev/null || true
	fi
	scripts/servers.sh stop "$dir" || code=1
	if [ "$code" -eq 0 ]; then
		scripts/servers.sh remove "$dir"
	else
		echo "drill: the logs are in $dir" >&2
	fi
	exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

INTUMWA_TEST_DISK=$size scripts/servers.sh start "$dir"
# shellcheck source=/dev/null
. "$dir/servers.env"
export DATABASE_URL REDIS_URL
go build -o "$dir/drill" ./tools/drill
"$dir/drill" -dir "$dir" -disk="$disk" -intumwa "$program" -normal "${NORMAL:-10m}" -only "${ONLY:-}" </dev/null &
child=$!
code=0
wait "$child" || code=$?
child=
exit "$code"
