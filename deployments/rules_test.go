package deployments

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"intumwa/internal/testenv"
)

const runbooks = "{{ $externalLabels.runbooks }}/"

// alerts are the alerting rules by name.
func alerts(t *testing.T) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, file := range files(t, "prometheus/rules/*.yaml") {
		groups, _ := documents(t, file)[0]["groups"].([]any)
		for _, g := range groups {
			rules, _ := at(g, "rules").([]any)
			for _, r := range rules {
				if name := text(at(r, "alert")); name != "" {
					if all[name] != nil {
						t.Errorf("%s is there twice", name)
					}
					all[name] = r
				}
			}
		}
	}
	return all
}

func files(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: nothing (%v)", pattern, err)
	}
	return found
}

// parts are a runbook's sections in order; the last three are there if they say something.
var parts = regexp.MustCompile("(?s)^# [^\n]+\n\n`.*\n\\*\\*Customers notice:\\*\\* .*\n## Do now " +
	"\\(\\[prologue\\]\\(README\\.md\\)\\)\n\n(.*?)```\n(.*?)\n```\n(.*)$")

// TestRunbooks: every runbook has the same sections, and begins with at most five commands. That the gateway must not
// be restarted stands in README.md.
func TestRunbooks(t *testing.T) {
	for _, page := range files(t, "../docs/runbooks/*.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(page) == "README.md" {
			continue
		}
		found := parts.FindStringSubmatch(string(text))
		if found == nil {
			t.Errorf("%s lacks one of the parts, or has them in another order", page)
			continue
		}
		commands := 0
		for line := range strings.SplitSeq(found[2], "\n") {
			if !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "#") { // the rest of a statement, or a comment
				commands++
			}
		}
		if commands > 5 {
			t.Errorf("%s: %d commands under Do now", page, commands)
		}
		last := 0
		for _, part := range []string{"\n**Do not** ", "\n**Find out:**", "\n**Prevent:** "} {
			if at := strings.Index(found[3], part); at >= 0 && at < last {
				t.Errorf("%s: %s comes too early", page, strings.TrimSpace(part))
			} else if at >= 0 {
				last = at
			}
		}
	}
}

// TestAlerts: each alert has a severity, a text and a runbook, which names the alert, its severity and when it fires.
func TestAlerts(t *testing.T) {
	unread := map[string]bool{}
	for _, page := range files(t, "../docs/runbooks/*.md") {
		unread[filepath.Base(page)] = true
	}
	delete(unread, "README.md")
	for name, rule := range alerts(t) {
		severity := text(at(rule, "labels", "severity"))
		if !slices.Contains([]string{"page", "warning", "info"}, severity) {
			t.Errorf("%s: severity %q", name, severity)
		}
		for _, annotation := range []string{"summary", "description"} {
			if len(text(at(rule, "annotations", annotation))) < 20 {
				t.Errorf("%s: %s is missing", name, annotation)
			}
		}
		page, ok := strings.CutPrefix(text(at(rule, "annotations", "runbook_url")), runbooks)
		runbook, err := os.ReadFile(filepath.Join("../docs/runbooks", page))
		if !ok || err != nil {
			t.Errorf("%s: its runbook %q: %v", name, page, err)
			continue
		}
		delete(unread, page)
		for _, link := range regexp.MustCompile(`\]\(([a-z-]+\.md)\)`).FindAllSubmatch(runbook, -1) {
			delete(unread, string(link[1])) // or a page that it links to
		}
		// Two alerts may share a condition.
		if !regexp.MustCompile("`" + name + "` \\(" + severity + "\\)(, `[A-Za-z]+` \\([a-z]+\\))*:\\s+\\S").Match(runbook) {
			t.Errorf("%s does not say when %s (%s) fires", page, name, severity)
		}
	}
	for page := range unread {
		t.Errorf("no alert leads to %s", page)
	}
}

// TestAlertsAreTested: each alert has one case in which it fires and one in which it does
// not, except that for the dead man's switch.
func TestAlertsAreTested(t *testing.T) {
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, file := range files(t, "prometheus/tests/*.yaml") {
		tests, _ := documents(t, file)[0]["tests"].([]any)
		for _, test := range tests {
			cases, _ := at(test, "alert_rule_test").([]any)
			for _, c := range cases {
				name := text(at(c, "alertname"))
				if expected, _ := at(c, "exp_alerts").([]any); len(expected) > 0 {
					fires[name] = true
				} else {
					silent[name] = true
				}
			}
		}
	}
	all := alerts(t)
	for name := range all {
		if !fires[name] || silent[name] == (name == "AlwaysFires") {
			t.Errorf("%s: tested firing %v, not firing %v", name, fires[name], silent[name])
		}
	}
	for _, name := range slices.Collect(maps.Keys(fires)) {
		if all[name] == nil {
			t.Errorf("%s is tested and is no alert", name)
		}
	}
}

const promtoolTries = 5

// TestPromtool checks rules and configurations, and runs the rules' tests.
func TestPromtool(t *testing.T) {
	promtool := testenv.Tool(t, "promtool")
	rules, err := filepath.Abs("prometheus/rules")
	if err != nil {
		t.Fatal(err)
	}
	// Compose mounts the rules at the path in its configuration.
	compose, err := os.ReadFile("compose/prometheus.yaml")
	if err != nil {
		t.Fatal(err)
	}
	mounted := filepath.Join(t.TempDir(), "prometheus.yaml")
	if err := os.WriteFile(mounted, []byte(strings.ReplaceAll(string(compose), "/etc/prometheus/rules", rules)),
		0o600); err != nil {
		t.Fatal(err)
	}
	runs := [][]string{
		append([]string{"check", "rules", "--lint=all", "--lint-fatal"}, files(t, "prometheus/rules/*.yaml")...),
		{"check", "config", "prometheus/prometheus.yaml"},
		{"check", "config", mounted},
	}
	for _, file := range files(t, "prometheus/tests/*.yaml") {
		runs = append(runs, []string{"test", "rules", file})
	}
	var running sync.WaitGroup
	for _, args := range runs {
		running.Go(func() {
			var output []byte
			var err error
			// promtool compacts its own store during a test of more than a day, and loses
			// samples in one of ten runs of the week-long test. A wrong rule fails every
			// time.
			for range promtoolTries {
				command := exec.CommandContext(t.Context(), promtool, args...)
				command.Env = append(os.Environ(), "GOGC=400") // a third less work; its stores are small
				if output, err = command.CombinedOutput(); err == nil {
					return
				}
			}
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, output)
		})
	}
	running.Wait()
}

// TestAmtool checks Alertmanager's configuration, and that it routes each severity as in docs/monitoring.md.
func TestAmtool(t *testing.T) {
	amtool := testenv.Tool(t, "amtool")
	if output, err := exec.CommandContext(t.Context(), amtool, "check-config",
		"prometheus/alertmanager.yaml").CombinedOutput(); err != nil {
		t.Errorf("amtool: %v\n%s", err, output)
	}
	page, err := os.ReadFile("../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `(page|warning|info)` \\| `([a-z]+)`").FindAllStringSubmatch(string(page), -1)
	if output, err := exec.CommandContext(t.Context(), amtool, "config", "routes", "test",
		"--config.file=prometheus/alertmanager.yaml", "severity=info", "alertname=AlwaysFires").Output(); err != nil ||
		strings.TrimSpace(string(output)) != "switch" || !strings.Contains(string(page), "receiver `switch`") {
		t.Errorf("AlwaysFires goes to %q (%v), and docs/monitoring.md has the receiver switch", output, err)
	}
	receivers := map[string]bool{}
	for _, row := range rows {
		receivers[row[2]] = true
		output, err := exec.CommandContext(t.Context(), amtool, "config", "routes", "test",
			"--config.file=prometheus/alertmanager.yaml", "severity="+row[1]).Output()
		if got := strings.TrimSpace(string(output)); err != nil || got != row[2] {
			t.Errorf("severity %s goes to %q, and docs/monitoring.md has %s (%v)", row[1], got, row[2], err)
		}
	}
	if len(rows) != 3 || len(receivers) != 3 {
		t.Errorf("docs/monitoring.md sends three severities to %v", rows)
	}
}

// TestTasks: the runbook of tasks lists each dispatcher task below the alert that fires for it, with the effect of a
// stopped task.
func TestTasks(t *testing.T) {
	var source []byte
	for _, name := range []string{"recovery", "housekeeping"} {
		text, err := os.ReadFile("../dispatcher/" + name + "/" + name + ".go")
		if err != nil {
			t.Fatal(err)
		}
		source = append(source, text...)
	}
	page, err := os.ReadFile("../docs/runbooks/task-stalled.md")
	if err != nil {
		t.Fatal(err)
	}
	output := map[string]string{}
	_, list, _ := strings.Cut(string(page), "\n## Tasks\n")
	alert := ""
	for line := range strings.Lines(list) {
		if found := regexp.MustCompile("`(TaskStalled\\w*)`").FindStringSubmatch(line); found != nil {
			alert = found[1]
		}
		if names, waits, ok := strings.Cut(strings.TrimPrefix(line, "- "), ": "); ok && len(waits) > 10 {
			for task := range strings.SplitSeq(names, ", ") {
				output[strings.Trim(task, "`")] = alert
			}
		}
	}
	all := alerts(t)
	tasks := regexp.MustCompile(`\{Name: "(\w+)", Every:`).FindAllStringSubmatch(string(source), -1)
	for _, task := range tasks {
		fires := ""
		for _, name := range []string{"TaskStalled", "TaskStalledMinor"} {
			chosen := regexp.MustCompile(`task(=~|!~)"([^"]+)"`).FindStringSubmatch(text(at(all[name], "expr")))
			if chosen == nil {
				t.Fatalf("%s: no tasks are chosen", name)
			}
			if regexp.MustCompile("^("+chosen[2]+")$").MatchString(task[1]) == (chosen[1] == "=~") {
				fires += name
			}
		}
		if output[task[1]] != fires {
			t.Errorf("%s fires %q, and the runbook has %q", task[1], fires, output[task[1]])
		}
		delete(output, task[1])
	}
	if len(tasks) < 10 || len(output) > 0 {
		t.Errorf("%d tasks; the runbook has more: %v", len(tasks), output)
	}
}
