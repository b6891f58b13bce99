package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// packaged are the programs of the manual's blocks, beside shell words and coreutils, with Debian's package or the
// place to get them.
var packaged = map[string]string{
	"intumwa": "ours", "intumwa-backup": "ours",
	"amtool": "prometheus-alertmanager", "promtool": "prometheus", "apt-get": "apt", "awk": "mawk", "cmp": "diffutils",
	"createdb": "postgresql-client", "curl": "curl",
	"docker": "docker.io", "grep": "grep", "helm": "helm.sh", "ip": "iproute2", "journalctl": "systemd",
	"kubectl": "kubernetes.io", "nano": "nano",
	"openssl": "openssl", "patronictl": "patroni", "perl": "perl", "pg_basebackup": "postgresql-client",
	"pg_ctlcluster": "postgresql-common", "pg_dump": "postgresql-client",
	"pg_isready": "postgresql-client", "ping": "iputils-ping", "psql": "postgresql-client", "redis-cli": "redis-tools",
	"sed": "sed", "ss": "iproute2", "systemctl": "systemd",
	"systemd-run": "systemd", "timedatectl": "systemd", "top": "procps",
}

// standard are shell words and coreutils.
var standard = strings.Fields(". [ X cat cd cp date df du echo env export fi for done head install mv rm runuser set " +
	"sha256sum sh sort tail uniq")

// foreignUnits belong to other packages.
var foreignUnits = strings.Fields("postgresql postgresql@15-main patroni@15-main redis-server prometheus " +
	"prometheus-alertmanager systemd-timesyncd")

// proved are blocks that change a machine and that a test runs.
var proved = []struct{ page, has, test string }{
	{"backup.md", "alter system set archive_mode", "TestRestoreByTheManual"},
	{"backup.md", "intumwa-backup base", "TestRestoreByTheManual"},
	{"backup.md", "KEEP=2 intumwa-backup prune", "TestRestoreByTheManual"},
	{"backup.md", "intumwa-backup finish", "TestRestoreByTheManual"},
	{"backup.md", "restore '2026-03-01 08:00:00+02'", "TestRestoreByTheManual"},
	{"backup.md", "restore '2026-03-01 08:20:00+02' 1", "TestRestoreByTheManual"},
	{"backup.md", "intumwa admin restored", "TestRestoreByTheManual"},
	{"machines.md", "deployments/package/postinstall", "TestPackages"},
	{"monitoring.md", "promtool check config", "TestPackages"},
	{"upgrade.md", "cmp -s bin/intumwa", "TestPackages"},
	{"upgrade.md", "apt-get install ./intumwa_*.deb", "TestPackages"},
	{"upgrade.md", "apt-get install --allow-downgrades", "TestPackages"},
	{"upgrade.md", "install -m 0755 /usr/local/bin/intumwa.before", "TestPackages"},
	{"upgrade.md", "systemctl disable", "TestPackages"},
	{"runbooks/clock.md", "update outbox", "TestBacklogAfterTheClockWentBack"},
	{"patroni.md", "intumwa-backup restore", "TestPatroniRestored"},
	{"patroni.md", "remove 15-main", "TestPatroniRestored"},
	{"patroni.md", "mv -T", "TestPatroniRestored"},
	{"upgrade.md", "intumwa migrate", "TestRollingUpgrade"},
}

// byHand are blocks that change a machine and that only a person can run, with the reason. TestManualNamesCommands and
// TestManualBlocks still parse them.
var byHand = []struct{ page, has, why string }{
	{"backup.md", "systemctl stop 'intumwa*'", "stops the units of every machine"},
	{"backup.md", "systemctl start --all 'intumwa*'", "starts them"},
	{"high-availability.md", "application_name=STANDBY", "on a second machine"},
	{"high-availability.md", "synchronous_standby_names = 'STANDBY'", "waits for the second machine"},
	{"high-availability.md", "pg_promote", "on the second machine, when the first is lost; TestPostgresFailsOver " +
		"promotes a standby"},
	{"high-availability.md", "intumwa-backup base", "there"},
	{"high-availability.md", "application_name=PRIMARY", "on the lost machine"},
	{"install.md", "sha256sum -c", "downloads packages"},
	{"install.md", "shared_buffers", "restarts the machine's PostgreSQL with another memory"},
	{"install.md", "maxmemory-policy", "changes the machine's Redis"},
	{"install.md", "secrets/mail", "a person types the password"},
	{"machines.md", "INTUMWA_OPS_LISTEN", "starts units"},
	{"machines.md", "docker compose", "builds images"},
	{"machines.md", "helm install", "needs a cluster; TestChart renders and lints what it would apply"},
	{"patroni.md", "synchronous_mode=true", "changes a cluster under Patroni; internal/testenv makes one with the " +
		"same settings"},
	{"patroni.md", "archive_mode=on", "the same, with the machine's /backup"},
	{"patroni.md", "systemctl stop patroni@15-main", "on every node; TestPatroniRestored stops them in this order"},
	{"runbooks/redis-down.md", "acl setuser", "makes a user at the machine's Redis"},
	{"runbooks/standby-missing.md", "synchronous_standby_names = 'NAME'",
		"waits for a standby of that name; TestRequireStandby sets both values"},
	{"runbooks/unknown-outcome.md", "kubectl -n intumwa scale", "needs a cluster"},
	{"upgrade.md", "createdb -O intumwa intumwa_new", "makes a database on the machine's PostgreSQL"},
}

// changes matches a command that changes a machine. Commands of `intumwa admin` are in TestManualNamesCommands.
var changes = regexp.MustCompile(
	`(?m)\bsystemctl (?:--\w+ )?(?:start|stop|restart|enable|disable|reload)\b|(?:^|[;&|{(] *|-- (?:env \S+ )?)(?:install|cp|mv|rm|rsync|apt-get (?:install|remove)|nano|` +
		`createdb|pg_basebackup|pg_ctlcluster|intumwa-backup|intumwa migrate|intumwa admin restored|docker|helm (?:install|upgrade)) |\bsed -i|alter system|pg_promote|pg_drop|update \w+ set|` +
		`create role|config (?:set|rewrite)|acl setuser|edit-config|patronictl .*(?:restart|remove|switchover|reinit)|kubectl
		.*(?:create|scale|label|rollout|delete)|> ?/etc`)

// Pieces of shell that are no words of a command.
var (
	functions   = regexp.MustCompile(`(?m)(?:^|; ) *([\w-]+)\(\) \{`)
	comments    = regexp.MustCompile(`(?m)(^|\s)#.*$`)
	arithmetic  = regexp.MustCompile(`\$\(\([^)]*\)\)`)
	substituted = regexp.MustCompile(`[$<]\(([^()]*)\)`)
	quoted      = regexp.MustCompile(`(?s)'[^']*'|"(?:\\.|[^"\\])*"`)
	expanded    = regexp.MustCompile(`\$\{[^}]*\}|\{[^ {}]*,[^ {}]*\}`)
	separators  = regexp.MustCompile(`\n|&&|\|\||[;|(){}&]`)
	assignment  = regexp.MustCompile(`^\w+\+?=`)
)

// simple returns the words of each command of a block, without assignments, keywords, runuser and env.
func simple(text string) (commands [][]string) {
	text = arithmetic.ReplaceAllString(strings.ReplaceAll(comments.ReplaceAllString(text, ""), "\\\n", " "), "X")
	for {
		inner := substituted.FindStringSubmatchIndex(text)
		if inner == nil {
			break
		}
		text = text[:inner[0]] + "X" + text[inner[1]:] + "\n" + text[inner[2]:inner[3]]
	}
	text = expanded.ReplaceAllString(quoted.ReplaceAllString(text, "X"), "X")
	for _, piece := range separators.Split(text, -1) {
		words := strings.Fields(piece)
		for len(words) > 0 && (assignment.MatchString(words[0]) ||
			slices.Contains([]string{"if", "then", "else", "do", "while", "!", "command", "exec", "env"}, words[0])) {
			words = words[1:]
		}
		if len(words) == 0 {
			continue
		}
		commands = append(commands, words)
		if after := slices.Index(words, "--"); after >= 0 && (words[0] == "runuser" || words[0] == "kubectl") {
			commands = append(commands, simple(strings.Join(words[after+1:], " "))...)
		}
	}
	return commands
}

// TestManualBlocks: the programs, units, files and steps of intumwa-backup in the manual's blocks exist. A block that
// changes a machine is run by a test, or stands in byHand with the reason why not.
func TestManualBlocks(t *testing.T) {
	list := blocks(t)
	known := slices.Clone(standard)
	for _, b := range list {
		for _, function := range functions.FindAllStringSubmatch(b.text, -1) {
			known = append(known, function[1])
		}
	}
	script, err := os.ReadFile("../../deployments/backup/intumwa-backup")
	if err != nil {
		t.Fatal(err)
	}
	used, first := map[string]bool{}, map[string]bool{}
	for _, b := range list {
		for _, words := range simple(b.text) {
			program := words[0]
			if used[program] = true; packaged[program] == "" && !slices.Contains(known, program) {
				t.Errorf("%s:%d: which package has %s?", b.page, b.line, program)
			}
			arguments := slices.DeleteFunc(slices.Clone(words[1:]),
				func(word string) bool { return strings.HasPrefix(word, "-") })
			switch {
			case program == "systemctl" && len(arguments) > 1:
				for _, unit := range arguments[1:] {
					checkUnit(t, b, unit)
				}
			case program == "intumwa-backup" && (len(arguments) == 0 ||
				!strings.Contains(string(script), "\n"+arguments[0]+") ")):
				t.Errorf("%s:%d: intumwa-backup has no step %v", b.page, b.line, arguments)
			}
		}
		for _, file := range regexp.MustCompile(`(?:\bdeployments|/usr/share/intumwa)/[\w@./*-]+`).FindAllString(b.text, -1) {
			path := strings.Replace(file, "/usr/share/intumwa/", "deployments/", 1)
			if found, _ := filepath.Glob("../../" + path); len(found) == 0 && !strings.HasSuffix(path, "/.env") {
				// which the block makes
				t.Errorf("%s:%d: there is no %s", b.page, b.line, file)
			}
		}
		immediate := strings.HasPrefix(b.page, "runbooks/") && !first[b.page] // TestRunbookCommands runs it
		first[b.page] = true
		if changes.MatchString(b.text) && !immediate && !covered(b) {
			t.Errorf("%s:%d: run this block in a test, or say in byHand why only a person can:\n%s", b.page, b.line, b.text)
		}
	}
	for program := range packaged {
		if !used[program] {
			t.Errorf("no block uses %s", program)
		}
	}
	finds := func(page, has string) {
		if !slices.ContainsFunc(list, func(b block) bool { return b.page == page && strings.Contains(b.text, has) }) {
			t.Errorf("%s has no block with %s", page, has)
		}
	}
	tests := ""
	for _, folder := range []string{".", "../../deployments", "../../dispatcher", "../../internal/stories"} {
		files, _ := filepath.Glob(folder + "/*_test.go")
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tests += string(text)
		}
	}
	for _, one := range proved {
		if finds(one.page, one.has); !strings.Contains(tests, "\nfunc "+one.test+"(") {
			t.Errorf("there is no %s", one.test)
		}
	}
	for _, one := range byHand {
		finds(one.page, one.has)
	}
}

// covered reports whether a block is in one of the two lists.
func covered(b block) bool {
	for _, one := range proved {
		if b.page == one.page && strings.Contains(b.text, one.has) {
			return true
		}
	}
	for _, one := range byHand {
		if b.page == one.page && strings.Contains(b.text, one.has) {
			return true
		}
	}
	return false
}

// checkUnit fails the test if there is no unit of that name.
func checkUnit(t *testing.T, b block, unit string) {
	t.Helper()
	name, instance, _ := strings.Cut(unit, "@")
	if unit == "X" || slices.Contains(foreignUnits, unit) { // quoted, or of another package
		return
	}
	switch {
	case filepath.Ext(unit) != "":
		name = unit
	case instance != "":
		name += "@.service"
	default:
		name += ".service"
	}
	if _, err := os.Stat("../../deployments/systemd/" + name); err != nil {
		t.Errorf("%s:%d: there is no unit %s", b.page, b.line, unit)
	}
}
