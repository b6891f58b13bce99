#!/usr/bin/env bash
# Finds the programs for running (deps.sh run) or testing (deps.sh test) besides
# Go, and installs missing ones from the system's packages if permitted. Prints shell assignments for the caller to eval:
#
#   postgres_bin=/usr/lib/postgresql/15/bin
#   redis_server=/usr/bin/redis-server
#
# All other output goes to stderr. It starts no system service and
# touches no existing installation's data.
set -euo pipefail

purpose=${1:-run}
oldest_postgres=13
oldest_redis=6.2

# Whether version $1 is at least version $2.
at_least() {
	[ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

# The folder of the PostgreSQL server programs: the one in PATH if it is new
# enough, else the newest.
find_postgres() {
	local folders folder version
	mapfile -t folders < <(
		dirname "$(readlink -f "$(command -v postgres)" || true)"
		printf '%s\n' /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql@*/bin | sort -rV
	)
	for folder in "${folders[@]}"; do
		if [ "$folder" = . ] || ! [ -x "$folder/postgres" ] || ! [ -x "$folder/initdb" ] || ! [ -x "$folder/pg_ctl" ]; then
			continue
		fi
		version=$("$folder/postgres" --version | sed -E 's/[^0-9]*([0-9]+).*/\1/')
		if at_least "$version" "$oldest_postgres"; then
			printf '%s\n' "$folder"
			return
		fi
	done
}

find_redis() {
	local path version
	path=$(command -v redis-server || true)
	[ -n "$path" ] || return 0
	version=$("$path" --version | sed -E 's/.*v=([0-9.]+).*/\1/')
	if at_least "$version" "$oldest_redis"; then
		printf '%s\n' "$path"
	fi
}

# The race detector is linked by a C compiler.
find_compiler() {
	command -v "${CC:-gcc}" || command -v clang || true
}

# Lists missing packages by their Debian and Ubuntu names.
missing() {
	[ -n "$(find_postgres)" ] || echo postgresql
	[ -n "$(find_redis)" ] || echo redis-server
	if [ "$purpose" = test ] && [ -z "$(find_compiler)" ]; then
		echo gcc
		echo libc6-dev
	fi
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

may_install() {
	command -v apt-get >/dev/null || return 1
	[ "$(id -u)" -eq 0 ] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }
}

# Debian starts an installed server unless this file forbids it. Ours exists only
# during the installation.
policy=/usr/sbin/policy-rc.d

keep_services_down() {
	[ ! -e "$policy" ] || return 0
	printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
	as_root chmod 755 "$policy"
	trap 'as_root rm -f "$policy"' EXIT
}

install_packages() {
	echo "Installing $* from the system's packages (their own services are not started)." >&2
	keep_services_down
	local log
	log=$(mktemp)
	if ! {
		as_root apt-get -o DPkg::Lock::Timeout=300 update &&
			as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 \
				install -y --no-install-recommends "$@"
	} </dev/null >"$log" 2>&1; then
		tail -n 20 "$log" >&2
		rm -f "$log"
		return 1
	fi
	rm -f "$log"
}

give_up() {
	echo "Please install: $* (PostgreSQL $oldest_postgres or newer, Redis $oldest_redis or newer)." \
		"On Debian or Ubuntu: sudo apt-get install $*" >&2
	exit 1
}

mapfile -t packages < <(missing)
if [ ${#packages[@]} -gt 0 ]; then
	may_install || give_up "${packages[@]}"
	install_packages "${packages[@]}" || give_up "${packages[@]}"
	mapfile -t packages < <(missing)
	[ ${#packages[@]} -eq 0 ] || give_up "${packages[@]}"
fi

printf 'postgres_bin=%q\nredis_server=%q\n' "$(find_postgres)" "$(find_redis)"
