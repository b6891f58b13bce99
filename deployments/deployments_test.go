// Package deployments tests the files beside it.
package deployments

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"intumwa/configs"
	"intumwa/internal/testenv"
)

// documents reads every document of a YAML file.
func documents(t *testing.T, path string) (docs []map[string]any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range separator.Split(string(text), -1) { // yaml.Decoder ends at an empty document
		var doc map[string]any
		if err := yaml.Unmarshal([]byte(part), &doc); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if doc != nil { // comments alone
			docs = append(docs, doc)
		}
	}
	return docs
}

// separator stands between two documents.
var separator = regexp.MustCompile(`(?m)^---$`)

// at descends through maps and lists; nil if the path does not exist.
func at(v any, path ...any) any {
	for _, step := range path {
		switch key := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[key]
		case int:
			l, _ := v.([]any)
			if key >= len(l) {
				return nil
			}
			v = l[key]
		}
	}
	return v
}

func text(v any) string { s, _ := v.(string); return s }

// manifests are the chart with its example values, for clusters without Helm.
const manifests = "kubernetes/intumwa.yaml"

// gatewayConfigs are the files of the deployments' configurations.
func gatewayConfigs(t *testing.T) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "intumwa.yaml")
	for _, doc := range documents(t, manifests) {
		if text(doc["kind"]) == "ConfigMap" {
			if err := os.WriteFile(path, []byte(text(at(doc, "data", "intumwa.yaml"))), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return []string{"compose/intumwa.yaml", path}
}

// TestConfigurations: each is valid with the secrets of its environment, without
// warnings.
func TestConfigurations(t *testing.T) {
	environment := []string{"INTUMWA_DATABASE_URL=postgres://a:b@c/d?sslmode=require",
		"INTUMWA_REDIS_URL=redis://e:6379/0", "INTUMWA_ACCOUNTS_OTP_KEY=" + strings.Repeat("Q", 43),
		"INTUMWA_ENCRYPTION_KEY=" + strings.Repeat("Q", 43) + "=",
		"CARRIER_PASSWORD=secret", "LUMITEL_PASSWORD=secret"}
	for _, path := range gatewayConfigs(t) {
		config, err := configs.Load(path, environment)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if problems := config.Check(configs.Roles...); len(problems) > 0 {
			t.Errorf("%s: %v", path, problems)
		}
		if warnings := config.Warnings(configs.Roles...); len(warnings) > 0 {
			t.Errorf("%s: %v", path, warnings)
		}
		if len(config.API.TrustedProxies) == 0 && path != "compose/intumwa.yaml" {
			t.Errorf("%s: every visitor has the ingress's address", path)
		}
	}
}

// checked returns the problems and warnings of a configuration, without variables.
func checked(t *testing.T, text string) (problems, warnings []string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "intumwa.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := configs.Load(path, nil)
	if err != nil {
		return []string{err.Error()}, nil
	}
	for _, problem := range config.Check(configs.Roles...) {
		problems = append(problems, problem.String())
	}
	for _, warning := range config.Warnings(configs.Roles...) {
		warnings = append(warnings, warning.String())
	}
	return problems, warnings
}

func TestCompose(t *testing.T) {
	doc := documents(t, "compose/compose.yaml")[0]
	services, _ := doc["services"].(map[string]any)
	for _, want := range []string{"postgres", "redis", "carriers", "gateway", "prometheus", "grafana"} {
		service := services[want]
		if service == nil {
			t.Errorf("compose lacks %s", want)
			continue
		}
		if image := text(at(service, "image")); image != "intumwa" && image != "intumwa-dev" &&
			!regexp.MustCompile(`:v?\d`).MatchString(image) {
			t.Errorf("%s: image %q has no version", want, image)
		}
		if at(service, "mem_limit") == nil {
			t.Errorf("%s has no limit of memory", want)
		}
		if score, ok := at(service, "oom_score_adj").(uint64); !ok || (score == 0) != (want == "postgres") {
			t.Errorf("%s: oom_score_adj %v; PostgreSQL is the last to go", want, at(service, "oom_score_adj"))
		}
		if command := fmt.Sprint(at(service, "command")); strings.Contains(command, "${") {
			t.Errorf("%s: a variable in the command line, where every user can read it: %s", want, command)
		}
		volumes, _ := at(service, "volumes").([]any)
		for _, v := range volumes {
			if host, _, _ := strings.Cut(text(v), ":"); strings.HasPrefix(host, ".") {
				if _, err := os.Stat(filepath.Join("compose", host)); err != nil {
					t.Errorf("%s mounts %s: %v", want, host, err)
				}
			}
		}
		ports, _ := at(service, "ports").([]any)
		for _, p := range ports {
			if !strings.HasPrefix(text(p), "127.0.0.1:") {
				t.Errorf("%s opens %s to any address", want, p)
			}
		}
	}
	// The data source works in Compose and elsewhere: its address is a variable.
	datasource := text(at(documents(t, "grafana/provisioning/datasources/prometheus.yaml")[0], "datasources", 0, "url"))
	if datasource != "${PROMETHEUS_URL}" || at(services["grafana"], "environment", "PROMETHEUS_URL") == nil {
		t.Errorf("Grafana's data source is %q, and Compose does not set it", datasource)
	}
	for _, key := range []string{"ACCOUNTS_OTP_KEY", "ENCRYPTION_KEY"} {
		if services["gateway"] != nil && at(services["gateway"], "environment", "INTUMWA_"+key) == nil {
			t.Errorf("the gateway lacks INTUMWA_%s", key)
		}
	}
	// Every variable without a default is in env.example.
	raw, err := os.ReadFile("compose/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("compose/env.example")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(example, []byte("openssl rand -base64")) {
		t.Error("env.example makes passwords in base64: its / ends the authority of a URL")
	}
	for _, name := range regexp.MustCompile(`\$\{([A-Z_]+)(:\?[^}]*)?\}`).FindAllSubmatch(raw, -1) {
		if !bytes.Contains(example, append(name[1], '=')) {
			t.Errorf("env.example lacks %s", name[1])
		}
	}
}

func TestKubernetes(t *testing.T) {
	kinds := map[string][]any{}
	for _, doc := range documents(t, manifests) {
		if text(doc["apiVersion"]) == "" || text(at(doc, "metadata", "name")) == "" {
			t.Error("a document without apiVersion or name")
		}
		kinds[text(doc["kind"])] = append(kinds[text(doc["kind"])], doc)
		if text(doc["kind"]) == "Secret" {
			t.Error("a Secret: they are referred to only")
		}
	}
	roles := []string{}
	for _, d := range append(slices.Clone(kinds["Deployment"]), kinds["Job"]...) {
		name := text(at(d, "metadata", "name"))
		pod := at(d, "spec", "template", "spec")
		container := at(pod, "containers", 0)
		if at(pod, "securityContext", "runAsNonRoot") != true ||
			at(container, "securityContext", "readOnlyRootFilesystem") != true ||
			at(container, "securityContext", "allowPrivilegeEscalation") != false ||
			text(at(container, "securityContext", "capabilities", "drop", 0)) != "ALL" {
			t.Errorf("%s may do too much", name)
		}
		if at(container, "env") != nil || at(container, "resources", "limits", "memory") == nil {
			t.Errorf("%s: secrets by reference, and a limit of memory", name)
		}
		if text(at(d, "kind")) == "Job" {
			continue
		}
		for probe, path := range map[string]string{"livenessProbe": "/healthz", "readinessProbe": "/readyz",
			"startupProbe": "/healthz"} {
			if text(at(container, probe, "httpGet", "path")) != path {
				t.Errorf("%s: %s does not probe %s", name, probe, path)
			}
		}
		args, _ := at(container, "args").([]any)
		if !slices.Contains(args, any("--no-migrate")) {
			t.Errorf("%s migrates: that is the job's", name)
		}
		roles = append(roles, text(args[len(args)-1]))
	}
	if !slices.Equal(roles, []string{"api", "dispatcher", "webhooks", "dashboard"}) || len(kinds["Job"]) != 1 {
		t.Errorf("roles %v", roles)
	}
	if len(kinds["PodDisruptionBudget"]) != 4 || len(kinds["NetworkPolicy"]) < 5 {
		t.Error("disruption budgets or network policies are missing")
	}
}

// podSecrets lists the Secrets of each role's pods, and the variables in each.
var (
	podSecrets = map[string][]string{
		"api":        {"intumwa-database", "intumwa-redis", "intumwa-codes"},
		"dispatcher": {"intumwa-database", "intumwa-redis", "intumwa-carriers", "intumwa-codes"},
		"webhooks":   {"intumwa-database", "intumwa-redis", "intumwa-encryption", "intumwa-codes"},
		"dashboard":  {"intumwa-database", "intumwa-redis", "intumwa-encryption", "intumwa-codes"},
		"migrate":    {"intumwa-database"},
	}
	secretVariables = map[string]string{
		"intumwa-database":   "INTUMWA_DATABASE_URL=postgres://a:b@c/d?sslmode=require",
		"intumwa-redis":      "INTUMWA_REDIS_URL=redis://e:6379/0",
		"intumwa-codes":      "INTUMWA_ACCOUNTS_OTP_KEY=" + strings.Repeat("Q", 43),
		"intumwa-encryption": "INTUMWA_ENCRYPTION_KEY=" + strings.Repeat("Q", 43) + "=",
		"intumwa-carriers":   "LUMITEL_PASSWORD=secret",
	}
)

// TestPodSecrets: a pod has the Secrets of its role and no others. With them its configuration is valid without
// warnings; without any one of them it is not.
func TestPodSecrets(t *testing.T) {
	values, err := os.ReadFile("helm/intumwa/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, variable := range secretVariables {
		key, _, _ := strings.Cut(variable, "=")
		if !bytes.Contains(values, []byte(": "+name+" ")) || !bytes.Contains(values, []byte(key)) {
			t.Errorf("the values do not name %s and its variable", name)
		}
	}
	pods := map[string]any{}
	for _, doc := range documents(t, manifests) {
		if kind := text(doc["kind"]); kind == "Deployment" || kind == "Job" {
			pods[text(at(doc, "spec", "template", "metadata", "labels", "app.kubernetes.io/component"))] = doc
		}
	}
	for role, want := range podSecrets {
		pod := pods[role]
		var names []string
		from, _ := at(pod, "spec", "template", "spec", "containers", 0, "envFrom").([]any)
		for _, source := range from {
			if at(source, "secretRef", "optional") != true {
				names = append(names, text(at(source, "secretRef", "name")))
			}
		}
		if !slices.Equal(names, want) {
			t.Errorf("pods of %s get %v, want %v", role, names, want)
		}
		if role == "migrate" { // checks only the database's section
			continue
		}
		for without := -1; without < len(want); without++ {
			var environment []string
			for i, name := range want {
				if i != without {
					environment = append(environment, secretVariables[name])
				}
			}
			config, err := configs.Load(gatewayConfigs(t)[1], environment)
			if err != nil {
				t.Fatalf("%s: %v", role, err)
			}
			if has := slices.Contains(want, "intumwa-encryption") &&
				without != 2; has == (config.Missing("encryption_key") != nil) {
				t.Errorf("%s: without their key, signing secrets would be stored in plain", role)
			}
			wrong := append(config.Check(role), config.Warnings(role)...)
			switch {
			case without < 0 && len(wrong) > 0:
				t.Errorf("%s: %v", role, wrong)
			case without >= 0 && len(wrong) == 0:
				t.Errorf("%s works without %s: it must not get it", role, want[without])
			}
		}
	}
}

// TestUnit: systemd accepts both units and rates them as well confined. One unit equals
// the other plus a role.
func TestUnit(t *testing.T) {
	for _, name := range []string{"intumwa.service", "intumwa@.service"} {
		t.Run(name, func(t *testing.T) { unitWorks(t, name) })
	}
	one, err := os.ReadFile("systemd/intumwa.service")
	if err != nil {
		t.Fatal(err)
	}
	each, err := os.ReadFile("systemd/intumwa@.service")
	if err != nil {
		t.Fatal(err)
	}
	_, one, _ = bytes.Cut(one, []byte("[Unit]"))
	_, each, _ = bytes.Cut(each, []byte("[Unit]"))
	if same := bytes.ReplaceAll(bytes.ReplaceAll(bytes.ReplaceAll(each, []byte(" --roles %i"), nil), []byte(" (%i)"), nil),
		[]byte("EnvironmentFile=-/etc/intumwa/%i.env\n"), nil); !bytes.Equal(same, one) {
		t.Error("the unit of one role is not the other with --roles")
	}
}

func unitWorks(t *testing.T, name string) {
	unit, err := os.ReadFile("systemd/" + name)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"DynamicUser=yes", "NoNewPrivileges=yes", "ProtectSystem=strict",
		"CapabilityBoundingSet=\n", "SystemCallFilter=@system-service",
		// so that it also starts the previous release
		"RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX", "TimeoutStopSec=15", "Restart=always",
		"ExecStart=/usr/local/bin/intumwa serve ", " --no-migrate",
		"MemoryHigh=", "MemoryMax=", "MemorySwapMax=0", "OOMPolicy=stop"} {
		if !bytes.Contains(unit, []byte(want)) {
			t.Errorf("the unit lacks %s", want)
		}
	}
	if bytes.Contains(unit, []byte("ProcSubset=pid")) {
		t.Error("without /proc/stat and /proc/sys, the process's start and the listen backlog (somaxconn) are unknown")
	}
	if !regexp.MustCompile(`(?m)^OOMScoreAdjust=[1-9]\d*$`).Match(unit) {
		t.Error("the gateway does not go before PostgreSQL when memory runs out")
	}
	analyze := testenv.Tool(t, "systemd-analyze")
	// systemd-analyze requires the program of the unit.
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, bytes.ReplaceAll(unit, []byte("/usr/local/bin/intumwa"), []byte(program)),
		0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.CommandContext(t.Context(), analyze, "verify", path).CombinedOutput(); err != nil ||
		len(output) > 0 {
		t.Errorf("systemd-analyze verify: %v %s", err, output)
	}
	// systemd's exposure rating; 2.0 and below is "OK".
	if output, err := exec.CommandContext(t.Context(), analyze, "security", "--offline=true", "--threshold=20",
		path).CombinedOutput(); err != nil {
		t.Errorf("systemd-analyze security: %v %s", err, output)
	}
}
