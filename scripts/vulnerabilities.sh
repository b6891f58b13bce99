#!/usr/bin/env bash
# Asks Go's vulnerability database (govulncheck) whether anything known to be
# weak is called, in the module or in the packages that are given. One that is
# found fails. A database that cannot be reached, or that has not answered within
# 50 s, is said in one line and is no failure: that is the only check that may be
# left out.
#
#   VULNDB=URL      another database (a mirror, file:///...)
#   VULNTIME=600    other than 50 seconds
set -euo pipefail
cd "$(dirname "$0")/.."

read -r _ source _ < <(grep '^govulncheck ' internal/testenv/tools.txt)
program=.bin/govulncheck-${source##*@}
[ -x "$program" ] || scripts/tools.sh
said=$(mktemp)
trap 'rm -f "$said"' EXIT
options=()
[ -z "${VULNDB:-}" ] || options=(-db "$VULNDB")
code=0
timeout -k 5 "${VULNTIME:-50}" "$program" "${options[@]}" "${@:-./...}" </dev/null >"$said" 2>&1 || code=$?
case $code in
0) grep -v '^$' "$said" | tail -n 4 ;;
124 | 137) echo "vulnerabilities: not checked: the database did not answer in time" >&2 ;;
*)
	if [ "$code" -ne 3 ] && grep -q -e 'fetching vulnerabilities' -e 'creating client' "$said"; then
		echo "vulnerabilities: not checked: the database cannot be reached from here" >&2
		exit 0
	fi
	cat "$said" >&2
	exit 1
	;;
esac
