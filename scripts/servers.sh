#!/usr/bin/env bash
# Private PostgreSQL and Redis servers that live in one folder.
#
#   servers.sh start DIR   starts both, unless they run, and returns when they
#                          answer; DIR/servers.env then has their addresses
#   servers.sh stop DIR    ends both cleanly and keeps their data
#   servers.sh remove DIR  ends both and deletes DIR
#   servers.sh alive DIR   succeeds if both run, else names the others
#
# PostgreSQL listens on a socket that only its user and root can reach, Redis on
# a free loopback port with a password. Data survives a restart and a crash.
# FSYNC=off makes PostgreSQL faster; then only a crash of the machine loses data.
# INTUMWA_TEST_DISK=768m gives it a tmpfs of that size, if mounting is permitted.
set -euo pipefail
umask 077

die() {
	echo "servers: $*" >&2
	exit 1
}

if [ $# -ne 2 ]; then
	sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" >&2
	exit 2
fi
verb=$1
mkdir -p "$2" || die "cannot make $2"
dir=$(cd "$2" && pwd -P)
[ -O "$dir" ] || die "$dir belongs to another user; remove it, or run as that user"
scripts=$(cd "$(dirname "$0")" && pwd -P)
socket_name=.s.PGSQL.5432

# PostgreSQL refuses to run as root; it then runs as an unprivileged user.
server_user=
if [ "$(id -u)" -eq 0 ]; then
	for candidate in postgres nobody; do
		if id "$candidate" >/dev/null 2>&1; then
			server_user=$candidate
			break
		fi
	done
	[ -n "$server_user" ] || die "PostgreSQL cannot run as root and there is no user postgres or nobody"
fi

as_server() {
	if [ -z "$server_user" ]; then
		(cd / && exec "$@")
	else
		(cd / && exec setpriv --reuid "$server_user" --regid "$(id -g "$server_user")" --clear-groups \
			env -i PATH="$PATH" LC_ALL=C "$@")
	fi
}

# The command line of a process, empty when there is none.
arguments() {
	if [ -r "/proc/$1/cmdline" ]; then
		tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null || true
	else
		ps -ww -o args= -p "$1" 2>/dev/null || true
	fi
}

# Whether process $1 runs; a zombie does not.
alive() {
	local state
	kill -0 "$1" 2>/dev/null || return 1
	state=$(sed -E 's/.*\) (.).*/\1/' "/proc/$1/stat" 2>/dev/null) || return 0
	[ "$state" != Z ]
}

# The id in pid file $1, if that process works in folder $2 or its command line names
# it: after a crash the id may belong to another process.
running() {
	local pid
	pid=$(head -n 1 "$1" 2>/dev/null) || return 0
	if [ -n "$pid" ] && { [ "/proc/$pid/cwd" -ef "$2" ] || [[ $(arguments "$pid") == *"$2"* ]]; }; then
		printf '%s\n' "$pid"
	fi
}

# Ends process $1 by SIGTERM, after 20 s by force.
end() {
	local n
	kill -TERM "$1" 2>/dev/null || return 0
	for ((n = 0; n < 400; n++)); do
		alive "$1" || return 0
		sleep 0.05
	done
	kill -KILL "$1" 2>/dev/null || true
}

random_word() {
	head -c 18 /dev/urandom | base64 | tr -d '+/='
}

url_escape() {
	local text=$1 out='' c i
	for ((i = 0; i < ${#text}; i++)); do
		c=${text:i:1}
		case $c in
		[A-Za-z0-9/._-]) out+=$c ;;
		*) out+=$(printf '%s' "$c" | od -An -tx1 | tr -d '\n' | tr ' ' '%') ;;
		esac
	done
	printf '%s\n' "$out"
}

# --- PostgreSQL

# PostgreSQL's files are under DIR, unless its user cannot reach it (a checkout in
# root's home); then DIR/postgres is a link to a folder under /var/lib.
postgres_home() {
	local home=$dir/postgres
	if [ -L "$home" ]; then
		readlink "$home"
		return
	fi
	if [ ! -d "$home" ]; then
		mkdir "$home"
		if [ -n "${INTUMWA_TEST_DISK:-}" ]; then
			mount -t tmpfs -o "size=$INTUMWA_TEST_DISK,mode=755" tmpfs "$home" || die "a filesystem of $INTUMWA_TEST_DISK cannot be mounted"
		fi
		if [ -n "$server_user" ]; then
			chmod 711 "$dir"
			chown "$server_user" "$home"
			if ! as_server test -w "$home"; then
				rmdir "$home"
				home=/var/lib/intumwa-$(printf '%s' "$dir" | cksum | cut -d ' ' -f 1)
				rm -rf "$home" # of a deleted DIR
				mkdir "$home"
				chown "$server_user" "$home"
				ln -s "$home" "$dir/postgres"
				echo "servers: user $server_user cannot reach $dir, so PostgreSQL's files are in $home" >&2
			fi
		fi
	fi
	printf '%s\n' "$home"
}

make_data() {
	local data=$1 bin=$2 output
	as_server rm -rf "$data.new"
	as_server "$bin/initdb" -D "$data.new" -U intumwa -A trust -E UTF8 --no-locale --no-sync >/dev/null
	echo "include 'intumwa.conf'" | as_server tee -a "$data.new/postgresql.conf" >/dev/null
	as_server touch "$data.new/intumwa.conf"
	output=$(as_server "$bin/postgres" --single -D "$data.new" postgres <<<'CREATE DATABASE intumwa' 2>&1) ||
		die "the database cannot be made: $output"
	as_server mv "$data.new" "$data" # atomically
}

start_postgres() {
	local home data sockets bin=$postgres_bin have want log attempt
	home=$(postgres_home)
	data=$home/data
	log=$home/log
	sockets=$home
	if [ "${#sockets}" -gt 85 ]; then # a socket's path ends at 103 bytes on some systems
		sockets=$(mktemp -d /tmp/intumwa-XXXXXXXX)
		[ -z "$server_user" ] || chown "$server_user" "$sockets"
	fi
	as_server test -f "$data/PG_VERSION" || make_data "$data" "$bin"

	have=$(as_server cat "$data/PG_VERSION")
	want=$("$bin/postgres" --version | sed -E 's/[^0-9]*([0-9]+).*/\1/')
	if [ "$have" != "$want" ]; then
		bin=/usr/lib/postgresql/$have/bin
		[ -x "$bin/postgres" ] || die "the data in $dir is of PostgreSQL $have, installed is $want: install $have, or delete $dir to start anew"
	fi

	postgres_pid=$(running "$data/postmaster.pid" "$data")
	if [ -n "$postgres_pid" ]; then
		sockets=$(sed -n 5p "$data/postmaster.pid")
	else
		as_server rm -f "$data/postmaster.pid" "$sockets/$socket_name" "$sockets/$socket_name.lock" # of a crash
		as_server tee "$data/intumwa.conf" >/dev/null <<-CONF
			listen_addresses = ''
			unix_socket_directories = '${sockets//\'/\'\'}'
			max_connections = 400
			shared_buffers = 256MB
			max_wal_size = 2GB
			fsync = ${FSYNC:-on}
			log_line_prefix = '%m [%p] '
		CONF
		for attempt in 1 2 3 4 5; do # a crashed server's children may hold its memory briefly
			if as_server "$bin/pg_ctl" -D "$data" -l "$log" -w -t 60 start >/dev/null 2>&1; then
				break
			fi
			if [ "$attempt" -eq 5 ]; then
				as_server tail -n 20 "$log" >&2 || true
				die "PostgreSQL does not start; its log is $log"
			fi
			sleep 1
		done
		postgres_pid=$(running "$data/postmaster.pid" "$data")
	fi
	database_url="postgres://intumwa@/intumwa?host=$(url_escape "$sockets")&sslmode=disable"
}

stop_postgres() {
	local home data pid sockets
	[ -e "$dir/postgres" ] || return 0
	home=$(postgres_home)
	data=$home/data
	pid=$(running "$data/postmaster.pid" "$data")
	[ -n "$pid" ] || return 0
	sockets=$(sed -n 5p "$data/postmaster.pid")
	kill -INT "$pid" 2>/dev/null || return 0 # fast shutdown: ends sessions, writes everything
	local n
	for ((n = 0; n < 600; n++)); do
		if ! alive "$pid"; then
			[[ $sockets != /tmp/intumwa-* ]] || rmdir "$sockets" 2>/dev/null || true
			return 0
		fi
		sleep 0.05
	done
	die "PostgreSQL (process $pid) does not end; its log is $home/log"
}

# --- Redis

redis_answers() {
	local line
	{
		exec 9<>"/dev/tcp/127.0.0.1/$1"
	} 2>/dev/null || return 1
	printf 'AUTH %s\r\nPING\r\n' "$2" >&9
	read -r -t 2 line <&9 && read -r -t 2 line <&9
	exec 9<&-
	[[ ${line:-} == +PONG* ]]
}

# A loopback port without a listener, below the ephemeral range.
free_port() {
	local port
	while :; do
		port=$((15000 + (RANDOM * 32768 + RANDOM) % 17000))
		if ! (exec 9<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
			printf '%s\n' "$port"
			return
		fi
	done
}

start_redis() {
	local home=$dir/redis password port n attempt
	mkdir -p "$home"
	[ -s "$home/password" ] || random_word >"$home/password"
	password=$(cat "$home/password")

	redis_pid=$(running "$home/pid" "$home")
	if [ -n "$redis_pid" ]; then
		port=$(cat "$home/port")
		if redis_answers "$port" "$password"; then
			redis_url="redis://default:$password@127.0.0.1:$port/0"
			return
		fi
		end "$redis_pid"
	fi
	for attempt in 1 2 3 4 5; do # another process may take the port in between
		port=$(free_port)
		printf '%s\n' "$port" >"$home/port"
		cat >"$home/redis.conf" <<-CONF
			bind 127.0.0.1
			port $port
			requirepass $password
			dir "$home"
			save ""
			appendonly yes
			maxclients 4000
		CONF
		setsid "$redis_server" "$home/redis.conf" </dev/null >>"$home/log" 2>&1 &
		redis_pid=$!
		printf '%s\n' "$redis_pid" >"$home/pid"
		for ((n = 0; n < 600; n++)); do
			if redis_answers "$port" "$password"; then
				redis_url="redis://default:$password@127.0.0.1:$port/0"
				return
			fi
			alive "$redis_pid" || break
			sleep 0.05
		done
		end "$redis_pid"
		echo "servers: Redis did not start on port $port (attempt $attempt)" >&2
	done
	tail -n 20 "$home/log" >&2 || true
	die "Redis does not start; its log is $home/log"
}

stop_redis() {
	local pid
	pid=$(running "$dir/redis/pid" "$dir/redis")
	[ -z "$pid" ] || end "$pid"
	rm -f "$dir/redis/pid"
}

case $verb in
start)
	assignments=$("$scripts/deps.sh" run)
	postgres_bin='' redis_server=''
	eval "$assignments" # sets both
	start_postgres
	start_redis
	{
		printf 'DATABASE_URL=%q\n' "$database_url"
		printf 'REDIS_URL=%q\n' "$redis_url"
		printf 'POSTGRES_PID=%q\n' "$postgres_pid"
		printf 'REDIS_PID=%q\n' "$redis_pid"
	} >"$dir/servers.env"
	;;
stop)
	stop_redis
	stop_postgres
	rm -f "$dir/servers.env"
	;;
remove)
	stop_redis
	stop_postgres
	if [ -L "$dir/postgres" ]; then
		rm -rf "$(postgres_home)"
	fi
	umount "$dir/postgres" 2>/dev/null || true # of INTUMWA_TEST_DISK
	rm -rf "$dir"
	;;
alive)
	rc=0
	home=$(postgres_home)
	[ -n "$(running "$home/data/postmaster.pid" "$home/data")" ] || { echo PostgreSQL && rc=1; }
	[ -n "$(running "$dir/redis/pid" "$dir/redis")" ] || { echo Redis && rc=1; }
	exit "$rc"
	;;
*) die "unknown verb $verb" ;;
esac
