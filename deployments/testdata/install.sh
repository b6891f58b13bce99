# shellcheck shell=bash
# Runs as root on a copy of a machine, with first and second packages in /release: what dpkg and rpm do with them.
fail() {
	echo "FAIL: $*"
	exit 1
}
has() { # FILE MODE OWNER
	[ "$(stat -c '%a %U:%G' "$1")" = "$2 $3" ] || fail "$1 is $(stat -c '%a %U:%G' "$1" 2>&1), want $2 $3"
}
gone() {
	for path in "$@"; do
		if [ -e "$path" ] || [ -L "$path" ]; then fail "$path is still there"; fi
	done
}
follows() { # a block of the manual, which the test sets as a variable
	bash -euc "${!1}" >/tmp/log 2>&1 || fail "$1: $(cat /tmp/log)"
}
config=/etc/intumwa/intumwa.yaml
links=/etc/systemd/system
kept() { # the operator's files are as they were
	grep -q '^# mine$' "$config" || fail "$1: the configuration was overwritten"
	[ "$(cat /etc/intumwa/secrets/*)" = "$secrets" ] || fail "$1: the secrets changed"
}

rm -f /var/lib/dpkg/info/man-db.triggers && sed -i '/man-db/d' /var/lib/dpkg/triggers/File # it rebuilds its index for seconds

# Installed: the program, its user, secrets that only it can read, a configuration, units that can be enabled.
dpkg -i /release/first.deb >/tmp/log 2>&1 </dev/null || fail "dpkg: $(cat /tmp/log)"
grep -q 'edit /etc/intumwa/intumwa.yaml' /tmp/log || fail "nothing says what comes next: $(cat /tmp/log)"
[ -z "$(dpkg --verify intumwa)" ] || fail "$(dpkg --verify intumwa)"
dpkg -L intumwa >/tmp/list
getent passwd intumwa | grep -q ':/usr/sbin/nologin$' || fail "the user is $(getent passwd intumwa)"
has /usr/bin/intumwa 755 root:root
has $config 644 root:root
has /etc/intumwa/secrets 750 root:intumwa
for key in database otp_key encryption_key; do
	has /etc/intumwa/secrets/$key 640 root:intumwa
	grep -qE '^[0-9a-f]{64}$' /etc/intumwa/secrets/$key || fail "$key is no key"
done
secrets=$(cat /etc/intumwa/secrets/*)
for file in /usr/bin/intumwa-backup /usr/share/man/man1/intumwa.1.gz /usr/share/bash-completion/completions/intumwa \
	/usr/share/intumwa/proxy/nginx.conf /usr/share/intumwa/grafana/dashboards/wall.json /usr/share/doc/intumwa/{copyright,THIRD-PARTY-NOTICES,install.md,runbooks/README.md,intumwa.sample.yaml}; do
	[ -s "$file" ] || fail "$file is missing"
done
follows MONITORING
[ "$(grep -c '[1-9][0-9]* rules found' /tmp/log)" = 4 ] || fail "Prometheus has not all rules: $(cat /tmp/log)"
grep -q '127.0.0.1:9091' /etc/default/prometheus || fail "Prometheus keeps the gateway's port"
grep -q 'cluster.listen-address= *"' /etc/default/prometheus-alertmanager || fail "Alertmanager opens 9094"
! grep -r /usr/local /usr/lib/systemd/system/*intumwa* || fail "a unit names another program"
systemd-analyze verify /usr/lib/systemd/system/{intumwa.service,intumwa@api.service,{base,test-send}-intumwa.{service,timer}} >/tmp/log 2>&1 || fail "$(cat /tmp/log)"
systemctl --root=/ enable intumwa.service base-intumwa.timer >/dev/null 2>&1
[ -L $links/multi-user.target.wants/intumwa.service ] || fail "the unit cannot be enabled"
if [ "$1" = real ]; then
	[[ $(intumwa version) == "intumwa v1.2.3 "* ]] || fail "$(intumwa version)"
	man --warnings intumwa 2>&1 >/dev/null | grep . && fail "the manual page has mistakes"
	if intumwa config check >/tmp/log 2>&1; then fail "a configuration without a carrier is accepted"; fi
	(
		# shellcheck source=/dev/null
		. /usr/share/bash-completion/completions/intumwa
		COMP_WORDS=(intumwa admin company sh) COMP_CWORD=3
		_intumwa
		[ "${COMPREPLY[*]}" = show ] || fail "completed to ${COMPREPLY[*]}"
	)
fi

# Upgraded: the operator's files stay, also if the package's configuration changed.
echo '# mine' >>$config
echo MINE=1 >/etc/intumwa/test-send.env
dpkg -i /release/second.deb >/tmp/log 2>&1 </dev/null || fail "upgrade: $(cat /tmp/log)"
dpkg -s intumwa | grep -q '^Version: 1.2.3+4.abcdef0$' || fail "$(dpkg -s intumwa)"
dpkg --compare-versions 1.2.3 lt 1.2.3+4.abcdef0 || fail "versions are out of order"
grep -q 'Run intumwa migrate' /tmp/log || fail "nothing says how to go on: $(cat /tmp/log)"
kept upgrade
dpkg-deb -R /release/second.deb /release/third
sed -i 's/^Version: .*/Version: 1.3.0/' /release/third/DEBIAN/control
echo '# new' >>/release/third/etc/intumwa/intumwa.yaml
dpkg-deb -b /release/third /release/third.deb >/dev/null
dpkg --force-confdef --force-confold -i /release/third.deb >/tmp/log 2>&1 </dev/null || fail "changed configuration: $(cat /tmp/log)"
kept 'changed configuration'
dpkg --force-confold -i /release/first.deb >/tmp/log 2>&1 </dev/null || fail "going back: $(cat /tmp/log)"
kept 'going back'

# Removed, and installed again.
dpkg -r intumwa >/tmp/log 2>&1 || fail "remove: $(cat /tmp/log)"
gone /usr/bin/intumwa /usr/lib/systemd/system/intumwa.service /usr/share/intumwa /usr/share/doc/intumwa
kept remove
dpkg -i /release/first.deb >/tmp/log 2>&1 </dev/null || fail "again: $(cat /tmp/log)"
kept again

# Purged: nothing stays but the secrets, which the database and its backups need.
dpkg -P intumwa >/tmp/log 2>&1 || fail "purge: $(cat /tmp/log)"
grep -q 'secrets stays' /tmp/log || fail "nothing says that the secrets stay: $(cat /tmp/log)"
while read -r path; do
	[ -d "$path" ] || gone "$path"
done </tmp/list
gone $links/multi-user.target.wants/intumwa.service $links/timers.target.wants/base-intumwa.timer /usr/share/intumwa /usr/share/doc/intumwa
[ "$(ls /etc/intumwa)" = secrets ] || fail "after purge /etc/intumwa has $(ls -R /etc/intumwa)"
[ "$(cat /etc/intumwa/secrets/*)" = "$secrets" ] || fail "purge changed the secrets"

# The RPM: the same files and scripts. An installation by hand left its group.
userdel intumwa
groupadd --system intumwa
rpm -i --nodeps /release/first.rpm >/tmp/log 2>&1 || fail "rpm: $(cat /tmp/log)"
[ "$(id -gn intumwa)" = intumwa ] || fail "the user is $(id intumwa)"
rpm -ql intumwa | sort >/tmp/rpm
while read -r path; do
	[ -d "$path" ] || grep -qxF "$path" /tmp/rpm || fail "the RPM lacks $path"
done < <(grep -v '^/usr/share/doc/intumwa/changelog' /tmp/list)
rpm -V --nodeps intumwa || fail "rpm -V"
[ "$(cat /etc/intumwa/secrets/*)" = "$secrets" ] || fail "rpm made other secrets"
echo '# mine' >>$config
rpm -U --nodeps /release/second.rpm >/tmp/log 2>&1 || fail "rpm -U: $(cat /tmp/log)"
[ -e /usr/bin/intumwa ] || fail "rpm -U left no program"
kept 'rpm -U'
rpm -e intumwa >/tmp/log 2>&1 || fail "rpm -e: $(cat /tmp/log)"
gone /usr/bin/intumwa /usr/share/intumwa
grep -q '^# mine$' $config.rpmsave || fail "rpm -e lost the configuration"
[ "$(cat /etc/intumwa/secrets/*)" = "$secrets" ] || fail "rpm -e lost the secrets"

# From an archive, and then to the package: a configuration with passwords stays closed to others, and the same units are
# enabled, as the package's.
cd /release/intumwa-*/ || fail "there is no archive"
follows ARCHIVE
has /usr/local/bin/intumwa 755 root:root
has $config 644 root:root
systemctl --root=/ enable intumwa@api intumwa@dispatcher base-intumwa.timer >/dev/null 2>&1
chgrp intumwa $config
chmod 640 $config
echo '# mine' >>$config
echo >>/usr/local/bin/intumwa
follows SAVE_ARCHIVE
has $config.before 640 root:intumwa
cmp -s bin/intumwa /usr/local/bin/intumwa || fail "the archive's program is not installed"
cmp -s bin/intumwa /usr/local/bin/intumwa.before && fail "the program of before is not kept"
follows BACK_ARCHIVE
cmp -s /usr/local/bin/intumwa /usr/local/bin/intumwa.before || fail "the program of before is not back"
has $config 640 root:intumwa
dpkg --force-confold -i /release/first.deb >/tmp/log 2>&1 </dev/null || fail "to the package: $(cat /tmp/log)"
follows TO_PACKAGE
gone /usr/local/bin/intumwa $links/intumwa.service $links/intumwa@.service $links/base-intumwa.timer
for unit in multi-user.target.wants/intumwa@api.service multi-user.target.wants/intumwa@dispatcher.service timers.target.wants/base-intumwa.timer; do
	[[ $(readlink $links/$unit) == */lib/systemd/system/* ]] || fail "$unit leads to $(readlink $links/$unit)"
done
gone $links/multi-user.target.wants/intumwa@webhooks.service $links/multi-user.target.wants/intumwa.service
rm $config.before
follows SAVE
has $config.before 640 root:intumwa
echo '# a mistake' >>$config
follows BACK
has $config 640 root:intumwa
kept 'going back by the manual'
if grep -q 'a mistake' $config; then fail "the configuration of before is not back"; fi
