#!/usr/bin/env bash
# Finds a program, or installs the Debian package that brings it when it may; a
# service of the package is not started.
#
#   package.sh need NAME PACKAGE   fails when the program NAME cannot be had;
#                                  perl:Some::Module stands for a Perl module
set -euo pipefail
name=${2:?usage: package.sh need NAME PACKAGE} package=${3:?usage: package.sh need NAME PACKAGE}

there() {
	case $name in
	perl:*) perl "-M${name#perl:}" -e 1 2>/dev/null ;;
	*) command -v "$name" >/dev/null ;;
	esac
}
! there || exit 0

as_root() {
	if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}
if ! command -v apt-get >/dev/null || ! { [ "$(id -u)" -eq 0 ] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }; }; then
	echo "Please install $name (on Debian or Ubuntu: sudo apt-get install $package)." >&2
	exit 1
fi
echo "Installing $package from the system's packages (its service, if any, is not started)." >&2
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then # while it is there, Debian starts no service it installs
	printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
	as_root chmod 755 "$policy"
	trap 'as_root rm -f "$policy"' EXIT
fi
log=$(mktemp)
if ! {
	as_root apt-get -o DPkg::Lock::Timeout=300 update &&
		as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$package"
} </dev/null >"$log" 2>&1; then
	tail -n 20 "$log" >&2
	rm -f "$log"
	exit 1
fi
rm -f "$log"
there
