#!/usr/bin/env bash
# Finds programs, or installs their Debian packages if permitted, without
# starting the packages' services.
#
#   package.sh need NAME PACKAGE [NAME PACKAGE ...]   fails with the names
#                                                     of missing ones
#   package.sh has NAME                               whether it is there
set -euo pipefail

there() {
	case $1 in
	/*) [ -e "$1" ] ;;
	*) command -v "$1" >/dev/null ;;
	esac
}

case ${1:-}/$# in
has/2)
	there "$2"
	exit
	;;
need/*[13579]) shift ;; # and pairs
*)
	sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" >&2
	exit 2
	;;
esac

# Keeps the missing pairs of $@ in names and packages.
missing() {
	names=() packages=()
	while [ $# -gt 0 ]; do
		there "$1" || { names+=("$1") packages+=("$2"); }
		shift 2
	done
}

give_up() {
	local i
	for i in "${!names[@]}"; do
		echo "Please install ${names[i]} (on Debian or Ubuntu: sudo apt-get install ${packages[i]})." >&2
	done
	exit 1
}

missing "$@"
[ ${#names[@]} -gt 0 ] || exit 0

as_root() {
	if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}
if ! command -v apt-get >/dev/null || ! { [ "$(id -u)" -eq 0 ] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }; }; then
	give_up
fi
echo "Installing ${packages[*]} from the system's packages (their services, if any, are not started)." >&2
policy=/usr/sbin/policy-rc.d
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if [ ! -e "$policy" ]; then # while it exists, Debian starts no installed service
	printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
	as_root chmod 755 "$policy"
	trap 'rm -f "$log"; as_root rm -f "$policy"' EXIT
fi
install() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 \
		install -y --no-install-recommends "$@" </dev/null >>"$log" 2>&1
}
as_root apt-get -o DPkg::Lock::Timeout=300 update </dev/null >"$log" 2>&1 || true # older lists may suffice
if ! install "${packages[@]}"; then
	for package in "${packages[@]}"; do # a missing one does not prevent the others
		install "$package" || true
	done
fi
missing "$@"
if [ ${#names[@]} -gt 0 ]; then
	tail -n 20 "$log" >&2
	give_up
fi
