#!/usr/bin/env bash
# `make run`: the whole of Intumwa on one machine, with a demo company. Private PostgreSQL and Redis servers, three simulated carriers, a
# webhook receiver and the gateway with all roles; all state is kept under
# RUN_DIR (.run) for the next run. Ctrl-C ends all of it.
#
# Variables and their defaults:
#
#   RUN_DIR           .run
#   RUN_API_PORT      8080     the API
#   RUN_OPS_PORT      9090     /metrics, /healthz, /readyz
#   RUN_DASHBOARD_PORT  8081   the dashboard
#   RUN_LUMITEL_PORT  2775     the simulated carriers' SMPP
#   RUN_LEO_PORT      2776
#   RUN_ONATEL_PORT   2777
#   RUN_SIM_PORT      2780     the simulated carriers' page
#   RUN_WEBHOOK_PORT  2781     the webhook receiver
#   RUN_MAIL_PORT     2525     the mail catcher
#   RUN_MAILS_PORT    2782     its page
#   RUN_EBMS_PORT     2783     the simulated eBMS of the tax office
set -euo pipefail
umask 077
cd "$(dirname "$0")/.."

api_port=${RUN_API_PORT:-8080}
ops_port=${RUN_OPS_PORT:-9090}
dashboard_port=${RUN_DASHBOARD_PORT:-8081}
lumitel_port=${RUN_LUMITEL_PORT:-2775}
leo_port=${RUN_LEO_PORT:-2776}
onatel_port=${RUN_ONATEL_PORT:-2777}
sim_port=${RUN_SIM_PORT:-2780}
webhook_port=${RUN_WEBHOOK_PORT:-2781}
mail_port=${RUN_MAIL_PORT:-2525}
mails_port=${RUN_MAILS_PORT:-2782}
ebms_port=${RUN_EBMS_PORT:-2783}

die() {
	echo "run: $*" >&2
	exit 1
}

mkdir -p "${RUN_DIR:=.run}"
run=$(cd "$RUN_DIR" && pwd -P)
intumwa=$PWD/bin/intumwa
dev=$PWD/bin/intumwa-dev
config=$run/intumwa.yaml
demo=$run/demo
logs=$run/log
[ -O "$run" ] || die "$run belongs to another user; delete it, or choose another folder: RUN_DIR=.run2 make run"
for program in "$intumwa" "$dev"; do
	[ -x "$program" ] || die "there is no $program: run make build"
done

# This gateway uses its own servers, whatever the caller's environment has.
for name in "${!INTUMWA_@}"; do
	unset "$name"
done

# --- what runs already

# Whether process $1 is one of ours: after a crash its id may belong to another
# process.
ours() {
	local words
	if [ -r "/proc/$1/cmdline" ]; then
		words=$(tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null) || true
	else
		words=$(ps -o args= -p "$1" 2>/dev/null) || true
	fi
	[[ $words == *"$intumwa"* || $words == *scripts/run.sh* ]]
}

if [ -s "$run/pid" ]; then
	other=$(cat "$run/pid")
	if kill -0 "$other" 2>/dev/null && ours "$other"; then
		die "another make run (process $other) uses $run; end it, or choose another folder: RUN_DIR=.run2 make run"
	fi
	while read -r other; do # of a killed run
		if ours "$other" && kill -TERM "$other" 2>/dev/null; then
			echo "Ending process $other of an earlier run that was killed."
			for ((n = 0; n < 300; n++)); do
				ours "$other" || break
				sleep 0.05
			done
			kill -KILL "$other" 2>/dev/null || true
		fi
	done < <(cat "$run/children" 2>/dev/null)
fi

listening() {
	(exec 9<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

need_port() {
	local port=$1 what=$2 variable=$3
	if listening "$port"; then
		die "port $port, for $what, is already in use on this machine. End what uses it (ss -ltnp shows it), or choose another: $variable=$((port + 10000)) make run"
	fi
}
need_port "$api_port" "the gateway's API" RUN_API_PORT
need_port "$ops_port" "the gateway's metrics" RUN_OPS_PORT
need_port "$dashboard_port" "the dashboard" RUN_DASHBOARD_PORT
need_port "$lumitel_port" "the simulated carrier lumitel" RUN_LUMITEL_PORT
need_port "$leo_port" "the simulated carrier leo" RUN_LEO_PORT
need_port "$onatel_port" "the simulated carrier onatel" RUN_ONATEL_PORT
need_port "$sim_port" "the simulated carriers' page" RUN_SIM_PORT
need_port "$webhook_port" "the webhook receiver" RUN_WEBHOOK_PORT
need_port "$mail_port" "the mail catcher" RUN_MAIL_PORT
need_port "$mails_port" "the mail catcher's page" RUN_MAILS_PORT
need_port "$ebms_port" "the simulated eBMS" RUN_EBMS_PORT

# --- starting and ending

printf '%s\n' $$ >"$run/pid"
: >"$run/children"
names=() pids=()

finish() {
	local code=$? i n
	trap '' INT TERM HUP PIPE
	set +e # after an error, the rest is still ended
	[ "${#pids[@]}" -eq 0 ] || echo "Ending."
	for ((i = ${#pids[@]} - 1; i >= 0; i--)); do # the gateway first
		kill -TERM "${pids[i]}" 2>/dev/null || continue
		for ((n = 0; n < 300; n++)); do
			kill -0 "${pids[i]}" 2>/dev/null || break
			sleep 0.05
		done
		if kill -KILL "${pids[i]}" 2>/dev/null; then
			echo "run: ${names[i]} did not end within 15 s and was killed" >&2
		fi
	done
	scripts/servers.sh stop "$run" || code=1
	rm -f "$run/pid" "$run/children"
	exit "$code"
}
trap finish EXIT
trap 'exit 0' INT TERM HUP # the regular end

# Each has a process group, so Ctrl-C reaches only this script, which ends them in
# order.
set -m

# Starts program $2… as $1, its output going to the log of that name.
start() {
	local name=$1
	shift
	"$@" </dev/null >>"$logs/$name.log" 2>&1 &
	disown # check_children reports its end
	names+=("$name") pids+=($!)
	printf '%s\n' $! >>"$run/children"
}

# Fails with the log of a process that has ended.
check_children() {
	local i dead
	for i in "${!pids[@]}"; do
		if ! kill -0 "${pids[i]}" 2>/dev/null; then
			echo "run: ${names[i]} has ended unexpectedly; its log, $logs/${names[i]}.log, ends with:" >&2
			tail -n 15 "$logs/${names[i]}.log" >&2
			exit 1
		fi
	done
	if ! dead=$(scripts/servers.sh alive "$run"); then
		die "${dead//$'\n'/ and } has ended unexpectedly; its log is in $run"
	fi
}

wait_for() { # $1: name; the rest: a command that succeeds once it is up
	local what=$1 n
	shift
	for ((n = 0; n < 600; n++)); do
		if "$@"; then
			return
		fi
		if ((n % 10 == 9)); then
			check_children
		fi
		sleep 0.05
	done
	die "$what did not come up within 30 s; the logs are in $logs"
}

ready() {
	local status
	{
		exec 9<>"/dev/tcp/127.0.0.1/$ops_port"
	} 2>/dev/null || return 1
	printf 'GET /readyz HTTP/1.0\r\n\r\n' >&9
	read -r -t 5 status <&9 || status=
	exec 9<&-
	[[ $status == *" 200 "* ]]
}

# A member of the JSON object on stdin: a number, or a string without escapes.
member() {
	tr -d '\n' | sed -nE "s/.*\"$1\" *: *(\"([^\"]*)\"|(-?[0-9]+)).*/\2\3/p"
}

random_word() {
	head -c 24 /dev/urandom | base64 | tr -d '+/=\n'
}

# --- the servers

mkdir -p "$logs" "$demo"
scripts/servers.sh start "$run"
DATABASE_URL='' REDIS_URL=''
# shellcheck source=/dev/null
. "$run/servers.env"

# --- the configuration

if [ -s "$demo/otp_key" ] && [ "$(wc -c <"$demo/otp_key")" -lt 32 ]; then # an older demo may have a shorter one
	rm -f "$demo/otp_key"
fi
for secret in otp_key encryption_key webhook_secret password admin_password ebms_password; do
	[ -s "$demo/$secret" ] || case $secret in
	otp_key | encryption_key) head -c 32 /dev/urandom | base64 >"$demo/$secret" ;;
	webhook_secret) printf 'whsec_%s\n' "$(head -c 32 /dev/urandom | base64)" >"$demo/$secret" ;;
	ebms_password) random_word | head -c 20 >"$demo/$secret" ;;
	*) random_word >"$demo/$secret" ;;
	esac
done

carrier() { # name, port, prefixes
	cat <<-YAML
		  - name: $1
		    prefixes: [$3]
		    links:
		      - name: $1-1
		        address: 127.0.0.1:$2
		        system_id: demo
		        password: demo
	YAML
}

cat >"$config" <<YAML
# make run overwrites this file at every start.
api:
  listen: 127.0.0.1:$api_port
ops:
  listen: 127.0.0.1:$ops_port
dashboard:
  listen: 127.0.0.1:$dashboard_port
  public_url: http://127.0.0.1:$dashboard_port
  docs_url: http://127.0.0.1:$api_port/docs
  admin_totp: false
mail:
  url: smtp://127.0.0.1:$mail_port
  from: Intumwa <no-reply@intumwa.example>
log:
  format: json
database:
  url: "${DATABASE_URL//\$/\$\$}"
  require_archive: false
redis:
  url: "${REDIS_URL//\$/\$\$}"
accounts:
  otp_key: "$(cat "$demo/otp_key")"
encryption_key: "$(cat "$demo/encryption_key")"
operator:
  name: Demo Operator SURL
  nif: "4000000001"
  trade_register: "12345/26"
  address: "Boulevard de l'Uprona 1, Bujumbura"
  phone: "+25722000000"
  email: operator@intumwa.example
  bank_accounts: ["DEMO BANK 1234567-89, Demo Operator SURL"]
  mobile_money: ["Demo money, merchant 12345"]
  taxes:
    - {name: TVA, rate: 18%, from: 2026-01-01, ebms: vat}
  invoices: {legal_form: SURL, activity_sector: Télécommunications, fiscal_center: DMC, commune: Mukaza, quarter: Rohero, vat_taxpayer: "true"}
ebms:
  url: http://127.0.0.1:$ebms_port
  username: ws400000000100001
  password_file: $demo/ebms_password
  system_id: ws400000000100001
webhooks:
  allow_private: true
carriers:
$(carrier lumitel "$lumitel_port" '"61", "62", "65", "66", "67", "68", "69"')
$(carrier leo "$leo_port" '"71", "72", "76", "79"')
$(carrier onatel "$onatel_port" '"77"')
YAML

"$intumwa" config check --config "$config" >>"$logs/setup.log" 2>&1 ||
	die "the configuration is not right: $(tail -n 5 "$logs/setup.log")"
"$intumwa" migrate --config "$config" >>"$logs/setup.log" 2>&1 ||
	die "the database cannot be migrated: $(tail -n 5 "$logs/setup.log")"

# --- the demo company, once: each step keeps its result under demo/

admin() { # $1: the file that keeps it, $2: its JSON key, the rest: the command
	local file=$demo/$1 key=$2 output value
	shift 2
	[ ! -s "$file" ] || return 0
	output=$("$intumwa" admin "$@" --json --config "$config" 2>>"$logs/setup.log") ||
		die "the demo company cannot be made (admin $1 $2): $(tail -n 5 "$logs/setup.log")"
	value=$(member "$key" <<<"$output")
	[ -n "$value" ] || die "admin $1 $2 did not answer with $key"
	printf '%s\n' "$value" >"$file"
}

email=demo@example.com
admin user user_id user create --email "$email" --name Demo --password-stdin <"$demo/password"
admin admin user_id user create --email admin@example.com --name Administrator --administrator --password-stdin <"$demo/admin_password"
admin company company_id company create --owner "$email" --name 'Demo company' --approved --verified --credits 1000
company=$(cat "$demo/company")
admin sender sender_id sender create --company "$company" --name DEMO --approved
admin token token token create --user "$email" --name demo
admin price bif price set --from "$(TZ=CAT-2 date +%Y-%m-01)" --bif 10 # of Burundi's month
cp "$demo/token" "$run/token"
rm -f "$demo/webhook" # the receiver's port may have changed
admin webhook url webhook set --company "$company" --url "http://127.0.0.1:$webhook_port/" \
	--secret-file "$demo/webhook_secret" --active=true

# --- carriers, webhook receiver, gateway

start carriers "$dev" carrier-sim --page "127.0.0.1:$sim_port" --system-id demo --password demo \
	--carrier "lumitel=127.0.0.1:$lumitel_port" \
	--carrier "leo=127.0.0.1:$leo_port" \
	--carrier "onatel=127.0.0.1:$onatel_port"
wait_for "the simulated carriers" listening "$onatel_port"

start webhooks "$dev" webhook-echo --listen "127.0.0.1:$webhook_port" --secret-file "$demo/webhook_secret"
wait_for "the webhook receiver" listening "$webhook_port"

start mails "$dev" mail-catcher --listen "127.0.0.1:$mail_port" --page "127.0.0.1:$mails_port"
wait_for "the mail catcher" listening "$mails_port"

EBMS_SIM_PASSWORD=$(cat "$demo/ebms_password") start ebms "$dev" ebms-sim --listen "127.0.0.1:$ebms_port" \
	--username ws400000000100001 --store "$run/ebms.json"
wait_for "the simulated eBMS" listening "$ebms_port"

start gateway "$intumwa" serve --config "$config"
wait_for "the gateway" ready

cat <<BANNER

Intumwa is up. Send an SMS from another terminal:

  curl -sS http://127.0.0.1:$api_port/v1/sms \\
    -H 'Authorization: Bearer $(cat "$run/token")' \\
    -H 'Content-Type: application/json' \\
    -d '{"phone_number": "+25779123400", "sender": "DEMO", "message": "Amahoro!"}'

The last two digits choose its fate (00: delivered, 01: undeliverable, …; the page of the phones has the table).
Its webhook appears below.

  phones     http://127.0.0.1:$sim_port/  what the carriers received: messages, codes for test numbers
  dashboard  http://127.0.0.1:$dashboard_port/
    customer       $email  password $(cat "$demo/password")
    administrator  admin@example.com  password $(cat "$demo/admin_password")
  mails      http://127.0.0.1:$mails_port/
  tax office http://127.0.0.1:$ebms_port/  the invoices that it received
  metrics    http://127.0.0.1:$ops_port/metrics
  logs       $logs/gateway.log (carriers.log, webhooks.log)
  operator   bin/intumwa admin links --config $config
  database   psql '$DATABASE_URL'

Ctrl-C ends everything.

BANNER

# --- until it ends

tail -n 0 -F "$logs/webhooks.log" 2>/dev/null &
disown
names+=("the webhook display") pids+=($!)
while :; do
	sleep 2 &
	wait $! || true
	check_children
done
