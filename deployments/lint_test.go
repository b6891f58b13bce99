package deployments

import (
	"bytes"
	"debug/elf"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"intumwa/internal/testenv"
)

var update = flag.Bool("update", false, "write the generated manifests")

// module builds a module of its own in tools.
func module(t *testing.T, name string) string {
	t.Helper()
	run := func(args ...string) error {
		command := exec.CommandContext(t.Context(), "go", args...)
		command.Dir, command.Env = filepath.Join("..", "tools", name),
			append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=-mod=readonly -trimpath")
		output, err := command.CombinedOutput()
		if err != nil {
			t.Logf("go %v: %s", args, output)
		}
		return err
	}
	if run("mod", "download") != nil {
		testenv.Lacks(t, "the modules of tools/"+name+" cannot be had: the chart cannot be checked")
	}
	path := filepath.Join(t.TempDir(), name)
	if err := run("build", "-o", path, "."); err != nil {
		t.Fatal(err)
	}
	return path
}

// chart runs tools/lint on the chart with the example's values and more.
func chart(t *testing.T, lint string, show bool, values ...string) (string, error) {
	t.Helper()
	args := []string{"helm/intumwa", "helm/example.yaml"}
	if show {
		args = append([]string{"-print"}, args...)
	}
	for _, each := range values {
		path := filepath.Join(t.TempDir(), "values.yaml")
		if err := os.WriteFile(path, []byte(each), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	var wrong bytes.Buffer
	command := exec.CommandContext(t.Context(), lint, args...)
	command.Stderr = &wrong
	output, err := command.Output()
	if err != nil {
		return string(output) + wrong.String(), err
	}
	return string(output), nil
}

// TestChart: Helm renders and lints the chart, the API's own types decode what comes out, and every reference has its
// object. The manifests for clusters without Helm are the chart with the example's values.
func TestChart(t *testing.T) {
	testenv.Long(t)
	lint := module(t, "lint")
	made, err := chart(t, lint, true)
	if err != nil {
		t.Fatal(made)
	}
	if *update {
		if err := os.WriteFile(manifests, []byte(made), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if is, err := os.ReadFile(manifests); err != nil || string(is) != made {
		t.Errorf("%s is not the chart with helm/example.yaml (%v): INTUMWA_TEST_LONG=1 go test ./deployments -run "+
			"TestChart -update", manifests, err)
	}
	for name, c := range map[string]struct{ values, finds string }{
		"the example": {},
		"monitoring": {values: "monitoring: {serviceMonitor: true, prometheusRule: true, labels: {release: " +
			"prometheus}}"},
		"files and a digest": {values: "files: {secret: intumwa-files}\nimage: {digest: sha256:" + strings.Repeat("a", 64) +
			"}\nimagePullSecrets: [registry]\nsecrets: {mail: intumwa-mail}"},
		"no network policies": {values: "networkPolicy: {enabled: false}"},
		"no proxy, and said":  {values: "withoutProxy: true\nconfig: {api: {trusted_proxies: []}}"},
		"no proxy": {values: "config: {api: {trusted_proxies: []}}",
			finds: "config.api.trusted_proxies is required"},
		"no carrier": {values: "config: {carriers: []}", finds: "minItems"},
		"a password": {
			values: `config: {carriers: [{name: a, default: true, links: [{name: a-1, address: "a:2775", system_id: a, ` +
				`password: plain}]}]}`, finds: "does not match pattern"},
		"a database's": {values: `config: {database: {url: "postgres://intumwa:plain@db/intumwa"}}`,
			finds: "does not match pattern"},
		"Redis's": {values: `config: {redis: {url: "redis://:plain@redis:6379/0"}}`,
			finds: "does not match pattern"},
		"a mail server's": {values: `config: {mail: {url: "smtp://a:plain@mail:587"}}`, finds: "does not match pattern"},
		"variables": {
			values: `config: {redis: {sentinel_password: "${SENTINEL}"}, mail: {url: "smtp://a:${MAIL}@mail:587"}}`},
		"an unknown value": {values: "replicas: 3", finds: "additional properties 'replicas' not allowed"},
		"no pods":          {values: "roles: {api: {replicas: 0}}", finds: "minimum"},
		"SMPP, not whose":  {values: "smppServer: {enabled: true, tls: intumwa-smpp}", finds: "minItems"},
		"SMPP, readable":   {values: "smppServer: {enabled: true, networks: [196.2.8.0/28]}", finds: "minLength"},
		"a port":           {values: "networkPolicy: {smscPorts: [70000]}", finds: "maximum"},
	} {
		found, err := chart(t, lint, false, c.values)
		if (err == nil) != (c.finds == "") || !strings.Contains(found, c.finds) {
			t.Errorf("%s: %v, %q, want %q", name, err, found, c.finds)
		}
	}
}

// TestChartSMPP: with smppServer.enabled the role smpp has pods with its Secrets and its certificate, a valid
// configuration, and a Service that customers' networks alone reach, with their own addresses.
func TestChartSMPP(t *testing.T) {
	testenv.Long(t)
	made, err := chart(t, module(t, "lint"), true, "smppServer: {enabled: true, tls: intumwa-smpp, networks: "+
		"[196.2.8.0/28]}")
	if err != nil {
		t.Fatal(made)
	}
	path := filepath.Join(t.TempDir(), "made.yaml")
	if err := os.WriteFile(path, []byte(made), 0o600); err != nil {
		t.Fatal(err)
	}
	objects := map[string]map[string]any{}
	for _, doc := range documents(t, path) {
		objects[text(doc["kind"])+" "+text(at(doc, "metadata", "name"))] = doc
	}
	service, policy := objects["Service intumwa-smpp"], objects["NetworkPolicy intumwa-smpp"]
	if text(at(service, "spec", "externalTrafficPolicy")) != "Local" ||
		text(at(service, "spec", "loadBalancerSourceRanges", 0)) != "196.2.8.0/28" ||
		text(at(policy, "spec", "ingress", 0, "from", 0, "ipBlock", "cidr")) != "196.2.8.0/28" {
		t.Errorf("the door is %v, %v", service, policy)
	}
	pod := at(objects["Deployment intumwa-smpp"], "spec", "template", "spec")
	var secrets []string
	from, _ := at(pod, "containers", 0, "envFrom").([]any)
	for _, source := range from {
		secrets = append(secrets, text(at(source, "secretRef", "name")))
	}
	if !slices.Equal(secrets, []string{"intumwa-database", "intumwa-redis", "intumwa-codes"}) ||
		text(at(pod, "volumes", 1, "secret", "secretName")) != "intumwa-smpp" ||
		text(at(pod, "containers", 0, "volumeMounts", 1, "mountPath")) != "/etc/intumwa-smpp" ||
		at(pod, "containers", 0, "lifecycle", "preStop") == nil {
		t.Errorf("pods of smpp: %v, %v", secrets, pod)
	}
	given := text(at(objects["ConfigMap intumwa"], "data", "intumwa.yaml"))
	if !strings.Contains(given, "cert: /etc/intumwa-smpp/tls.crt") || !strings.Contains(given, "listen: 0.0.0.0:2776") {
		t.Errorf("the configuration is\n%s", given)
	}
}

// TestImage: the binary of the Dockerfile is static and prints its version.
func TestImage(t *testing.T) {
	testenv.Long(t)
	dockerfile, err := os.ReadFile("docker/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(module)
	for _, want := range []string{"FROM golang:" + string(version[1]), "USER 65532", "distroless/static"} {
		if !bytes.Contains(dockerfile, []byte(want)) {
			t.Errorf("the Dockerfile lacks %s", want)
		}
	}
	build := regexp.MustCompile(`(?m)^RUN (go build .*)$`).FindSubmatch(dockerfile)
	if build == nil {
		t.Fatal("the Dockerfile builds nothing")
	}
	path := filepath.Join(t.TempDir(), "intumwa")
	command := exec.CommandContext(t.Context(), testenv.Tool(t, "bash"), "-c",
		strings.Replace(string(build[1]), "-o /intumwa ", "-o "+path+" ", 1))
	command.Dir = ".."
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOTOOLCHAIN=local", "VERSION=v9.8.7")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build[1], err, output)
	}
	program, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = program.Close() }()
	for _, part := range program.Progs {
		if part.Type == elf.PT_INTERP || part.Type == elf.PT_DYNAMIC {
			t.Error("it is not static: distroless/static has no loader")
		}
	}
	output, err := exec.CommandContext(t.Context(), path, "version").Output()
	if err != nil || !bytes.Contains(output, []byte("v9.8.7")) {
		t.Errorf("it prints %q, %v", output, err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || bytes.Contains(text, []byte(filepath.Dir(here))) {
		t.Errorf("it holds the path that it was built in, or %v", err)
	}
}
