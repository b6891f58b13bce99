package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/client_golang/prometheus"

	"intumwa/configs"
	"intumwa/internal/testenv"
)

// recorder is a registry that remembers every registration, even without a series.
type recorder struct {
	*prometheus.Registry
	mu      sync.Mutex
	metrics map[string]registered
}

type registered struct {
	help   string
	labels []string
}

func (r *recorder) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

var descParts = regexp.MustCompile(
	`^Desc\{fqName: "([^"]*)", help: "((?:[^"\\]|\\.)*)", (?:unit: "[^"]*", )?constLabels: \{([^}]*)\}, ` +
		`variableLabels: \{([^}]*)\}\}$`)

func (r *recorder) Register(c prometheus.Collector) error {
	descs := make(chan *prometheus.Desc)
	go func() {
		c.Describe(descs)
		close(descs)
	}()
	for d := range descs {
		part := descParts.FindStringSubmatch(d.String())
		if part == nil {
			return fmt.Errorf("a description that is not understood: %s", d)
		}
		var labels []string
		for _, label := range strings.Split(part[3]+","+part[4], ",") {
			if name, _, _ := strings.Cut(strings.TrimSpace(label), "="); name != "" {
				labels = append(labels, name)
			}
		}
		r.mu.Lock()
		r.metrics[part[1]] = registered{help: part[2], labels: labels}
		r.mu.Unlock()
	}
	return r.Registry.Register(c)
}

// registeredMetrics starts a gateway with every role and returns what it registers.
func registeredMetrics(t *testing.T) map[string]registered {
	t.Helper()
	client, prefix := testenv.Redis(t)
	redisServer := client.Options()
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newShell(t, fmt.Sprintf(`
ebms: {url: "http://127.0.0.1:1", username: ws1, system_id: ws1, password_file: %q}
api: {listen: "127.0.0.1:0"}
ops: {listen: "127.0.0.1:0"}
dashboard: {listen: "127.0.0.1:0"}
kannel: {listen: "127.0.0.1:0"}
smpp_server: {listen: "127.0.0.1:0"}
database: {url: %q}
redis: {url: "redis://:%s@%s/%d", prefix: %q}
carriers: [{name: leo, default: true, links: [{name: leo-1, address: "127.0.0.1:1", system_id: a, password: b}]}]
`, password, testenv.Database(t), redisServer.Password, redisServer.Addr, redisServer.DB, prefix))
	config, err := configs.Load(s.config, nil)
	if err != nil {
		t.Fatal(err)
	}
	reader, writer := io.Pipe()
	r := &recorder{Registry: prometheus.NewRegistry(), metrics: map[string]registered{}}
	g := &gateway{config: config, log: slog.New(slog.NewTextHandler(writer, nil)), registry: r,
		roles: configs.Roles}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- g.serve(ctx)
		_ = writer.Close()
	}()
	lines := bufio.NewScanner(reader)
	ready := false
	for !ready && lines.Scan() {
		ready = strings.Contains(lines.Text(), "event=ready")
	}
	cancel()
	_, _ = io.Copy(io.Discard, reader)
	if err := <-done; err != nil || !ready {
		t.Fatalf("the gateway: ready %v, %v", ready, err)
	}
	return r.metrics
}

// The permitted labels. The values of each are a closed set: from the configuration
// (carrier, link, pool) or from a list in the code, never a number, a company, a token or
// a URL.
var closedLabels = map[string]string{
	"fault": "queue.Faults", "limit": "accounts' limits of codes",
	"carrier": "configuration", "link": "configuration", "pool": "two pools", "version": "one a build",
	"confirm": "configuration's words", "second": "configuration",
	"lane": "single, batch", "state": "states of links and endpoints", "status": "statuses; unknown ones are other",
	"result":   "list",
	"task":     "list",
	"listener": "api, dashboard, kannel, smpp", "reason": "list", "subject": "list", "reason_class": "list",
	"command": "commands of SMPP", "direction": "in, out", "outcome": "list", "mode": "list",
	"kind": "kinds of request", "encoding": "gsm7, ucs2", "route": "routes; others are none",
	"method": "methods; others are other",
	"code":   "status codes we answer", "event": "names of webhooks' events", "change": "list",
	"source":   "memory, database",
	"cause":    "errors of the handler",
	"quantile": "summary", "le": "histogram",
}

type rule struct {
	Alert, Record, Expr string
}

// expressions are all PromQL expressions of rules and dashboards by place, and the names
// that rules record.
func expressions(t *testing.T) (exprs map[string]string, recorded map[string]bool) {
	t.Helper()
	exprs, recorded = map[string]string{}, map[string]bool{}
	files, err := filepath.Glob("../../deployments/prometheus/rules/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no rules: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var groups struct {
			Groups []struct{ Rules []rule }
		}
		if err := yaml.Unmarshal(text, &groups); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, g := range groups.Groups {
			for _, r := range g.Rules {
				exprs["rule "+r.Alert+r.Record] = r.Expr
				if r.Record != "" {
					recorded[r.Record] = true
				}
			}
		}
	}
	boards, err := filepath.Glob("../../deployments/grafana/dashboards/*.json")
	if err != nil || len(boards) == 0 {
		t.Fatalf("%d dashboards, %v", len(boards), err)
	}
	for _, file := range boards {
		var d struct {
			Panels []struct {
				Title   string
				Targets []struct{ RefID, Expr string }
			}
			Templating struct {
				List []struct {
					Name  string
					Query any
				}
			}
		}
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, &d)
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				exprs[file+", panel "+p.Title+" "+target.RefID] = target.Expr
			}
		}
		for _, v := range d.Templating.List {
			if q, ok := v.Query.(map[string]any); ok {
				inner, _ := strings.CutPrefix(q["query"].(string), "label_values(")
				cut := strings.LastIndexByte(inner, ',')
				exprs[file+", variable "+v.Name] = inner[:cut]
			}
		}
	}
	return exprs, recorded
}

var (
	stringLiteral = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	grouping      = regexp.MustCompile(`\b(by|on|without|ignoring|group_left|group_right)\s*\(([^)]*)\)`)
	selector      = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)\s*\{([^}]*)\}`)
	brackets      = regexp.MustCompile(`\[[^\]]*\]`)
	identifier    = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*`)
	matcher       = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)\s*(?:=~|!~|!=|=)`)
)

// names parses an expression: its metrics with the labels that select each, and the
// labels that it groups by.
func names(expr string) (metrics map[string][]string, groups []string) {
	metrics = map[string][]string{}
	expr = stringLiteral.ReplaceAllString(expr, `""`)
	expr = brackets.ReplaceAllString(expr, "")
	for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
		groups = append(groups, identifier.FindAllString(g[2], -1)...)
	}
	expr = grouping.ReplaceAllString(expr, "")
	for _, sel := range selector.FindAllStringSubmatch(expr, -1) {
		for _, m := range matcher.FindAllStringSubmatch(sel[2], -1) {
			metrics[sel[1]] = append(metrics[sel[1]], m[1])
		}
	}
	expr = selector.ReplaceAllString(expr, "$1 ")
	for _, at := range identifier.FindAllStringIndex(expr, -1) {
		name, rest := expr[at[0]:at[1]], strings.TrimLeft(expr[at[1]:], " \n")
		switch {
		case strings.HasPrefix(rest, "("), at[0] > 0 && expr[at[0]-1] >= '0' && expr[at[0]-1] <= '9':
			// a function or a unit of time
		case slices.Contains([]string{"and", "or", "unless", "bool", "offset", "by", "on", "Inf", "NaN"}, name):
		default:
			metrics[name] = append(metrics[name], []string{}...)
		}
	}
	return metrics, groups
}

// family is the metric of a series.
func family(series string, all map[string]registered) (string, bool) {
	if _, there := all[series]; there {
		return series, true
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, cut := strings.CutSuffix(series, suffix); cut {
			if _, there := all[base]; there {
				return base, true
			}
		}
	}
	return "", false
}

// TestMetrics: every metric and label in a rule or dashboard is registered; every metric
// is used there, has a help, and belongs to a group of docs/metrics.md.
func TestMetrics(t *testing.T) {
	all := registeredMetrics(t)
	exprs, recorded := expressions(t)
	own := map[string]bool{"up": true, "ALERTS": true, "ALERTS_FOR_STATE": true} // Prometheus' own
	outside := []string{"job", "instance", "alertname", "alertstate", "severity"}
	used := map[string]bool{}
	for where, expr := range exprs {
		metrics, groups := names(expr)
		known := slices.Clone(outside)
		for name, labels := range metrics {
			base, there := family(name, all)
			switch {
			case there:
				used[base] = true
				allowed := append(slices.Clone(outside), all[base].labels...)
				if base != name {
					allowed = append(allowed, "le")
				}
				if base == "go_gc_duration_seconds" {
					allowed = append(allowed, "quantile")
				}
				for _, label := range labels {
					if !slices.Contains(allowed, label) {
						t.Errorf("%s: %s has no label %s", where, name, label)
					}
				}
				known = append(known, allowed...)
			case recorded[name], own[name]:
				known = append(known, slices.Collect(maps.Keys(closedLabels))...)
			default:
				t.Errorf("%s: no room registers %s", where, name)
			}
		}
		for _, label := range groups {
			if !slices.Contains(known, label) {
				t.Errorf("%s groups by %s, which none of its metrics has", where, label)
			}
		}
	}
	for name := range recorded {
		if !slices.ContainsFunc(slices.Collect(maps.Values(exprs)),
			func(expr string) bool { return strings.Contains(expr, name) }) {
			t.Errorf("nothing uses %s, which a rule records", name)
		}
	}
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	groups := map[string]bool{} // beginnings of names, and whether a metric has them
	for _, row := range regexp.MustCompile("(?m)^- (`[a-z_`, ]+`):").FindAllStringSubmatch(string(page), -1) {
		for beginning := range strings.SplitSeq(row[1], ", ") {
			groups[strings.Trim(beginning, "`")] = false
		}
	}
	for name, m := range all {
		if !strings.HasPrefix(name, "intumwa_") {
			continue
		}
		if m.help == "" {
			t.Errorf("%s has no help", name)
		}
		group := "" // the longest: smpp_server_ before smpp_
		for beginning := range groups {
			if strings.HasPrefix(name, "intumwa_"+beginning) && len(beginning) > len(group) {
				group = beginning
			}
		}
		if groups[group] = true; group == "" {
			t.Errorf("docs/metrics.md has no group for %s", name)
		}
		for _, label := range m.labels {
			if closedLabels[label] == "" {
				t.Errorf("%s has a label %s: is the set of its values closed?", name, label)
			}
		}
	}
	for beginning, has := range groups {
		if !has {
			t.Errorf("docs/metrics.md has a group %s without metrics", beginning)
		}
	}
}
