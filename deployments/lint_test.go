package deployments

import (
	"bytes"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"intumwa/internal/testenv"
)

// linter builds tools/lint, a module of its own.
func linter(t *testing.T) string {
	t.Helper()
	run := func(args ...string) error {
		command := exec.CommandContext(t.Context(), "go", args...)
		command.Dir, command.Env = filepath.Join("..", "tools", "lint"), append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
		said, err := command.CombinedOutput()
		if err != nil {
			t.Logf("go %v: %s", args, said)
		}
		return err
	}
	if run("mod", "download") != nil {
		testenv.Lacks(t, "the modules of tools/lint cannot be had: manifests and Dockerfile cannot be checked")
	}
	path := filepath.Join(t.TempDir(), "lint")
	if err := run("build", "-o", path, "."); err != nil {
		t.Fatal(err)
	}
	return path
}

// lints returns what the linter has to say of a text.
func lints(t *testing.T, linter, check, text string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), linter, check)
	command.Stdin = strings.NewReader(text)
	said, err := command.CombinedOutput()
	if (err != nil) != (len(said) > 0) {
		t.Fatalf("lint %s: %v\n%s", check, err, said)
	}
	return string(said)
}

// TestSchemas: what kustomize makes of the manifests is what the API's own types take, and what refers to something finds it; and
// the Dockerfile passes every rule of docker build --check. That the checks see anything is tried with mistakes.
func TestSchemas(t *testing.T) {
	lint := linter(t)
	kustomize := testenv.Tool(t, "kustomize")
	var base string
	for _, folder := range []string{"kubernetes/overlays/example", "kubernetes/base"} {
		made, err := exec.CommandContext(t.Context(), kustomize, "build", folder).Output()
		if err != nil {
			t.Fatal(err)
		}
		if said := lints(t, lint, "manifests", string(made)); said != "" {
			t.Errorf("%s:\n%s", folder, said)
		}
		base = string(made)
	}
	dockerfile, err := os.ReadFile("docker/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	if said := lints(t, lint, "dockerfile", string(dockerfile)); said != "" {
		t.Error(said)
	}
	for _, mistake := range []struct{ check, old, new, want string }{
		{"manifests", "terminationGracePeriodSeconds", "terminationGracePeriodsSeconds", "unknown field"},
		{"manifests", "runAsNonRoot: true", "runAsNonRoot: maybe", "cannot unmarshal string"},
		{"manifests", "memory: 256Mi", "memory: 256Mx", "quantities must match"},
		{"manifests", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: true\n          readOnlyRootFilesystem: true", "already set in map"},
		{"manifests", "kind: Deployment", "kind: Deploy", "no kind"},
		{"manifests", "whenUnsatisfiable: ScheduleAnyway", "whenUnsatisfiable: Perhaps", "is none of"},
		{"manifests", "protocol: UDP", "protocol: QUIC", "is none of"},
		{"manifests", "minAvailable: 1", "minAvailable: 2", "it lets 0 go at once"},
		{"manifests", "targetPort: http", "targetPort: https", "which no container of its pods has"},
		{"manifests", "port: ops", "port: opsy", "asks port opsy"},
		{"manifests", "serviceAccountName: intumwa", "serviceAccountName: nobody", "there is no ServiceAccount nobody"},
		{"manifests", "mountPath: /etc/intumwa\n          name: config", "mountPath: /etc/intumwa\n          name: other", "which is no volume"},
		{"dockerfile", "WORKDIR /src", "WORKDIR src", "WorkdirRelativePath"},
		{"dockerfile", `CMD ["serve", "--config", "/etc/intumwa/intumwa.yaml"]`, "CMD serve", "JSONArgsRecommended"},
		{"dockerfile", `image.version="${VERSION}"`, `image.version="${VERSON}"`, "UndefinedVar"},
		{"dockerfile", "AS build", "AS Build", "StageNameCasing"},
	} {
		text := map[string]string{"manifests": base, "dockerfile": string(dockerfile)}[mistake.check]
		wrong := strings.ReplaceAll(text, mistake.old, mistake.new)
		if wrong == text {
			t.Errorf("%q is not there any more", mistake.old)
		}
		if said := lints(t, lint, mistake.check, wrong); !strings.Contains(said, mistake.want) {
			t.Errorf("%s instead of %s: it says\n%s", mistake.new, mistake.old, said)
		}
	}
}

// TestImage: what the Dockerfile builds needs nothing of its image, and says its version.
func TestImage(t *testing.T) {
	dockerfile, err := os.ReadFile("docker/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	build := regexp.MustCompile(`(?m)^RUN (go build .*)$`).FindSubmatch(dockerfile)
	if build == nil {
		t.Fatal("the Dockerfile builds nothing")
	}
	path := filepath.Join(t.TempDir(), "intumwa")
	command := exec.CommandContext(t.Context(), testenv.Tool(t, "bash"), "-c", strings.Replace(string(build[1]), "-o /intumwa ", "-o "+path+" ", 1))
	command.Dir = ".."
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOTOOLCHAIN=local", "VERSION=v9.8.7")
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build[1], err, said)
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
	said, err := exec.CommandContext(t.Context(), path, "version").Output()
	if err != nil || !bytes.Contains(said, []byte("v9.8.7")) {
		t.Errorf("it says %q, %v", said, err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || bytes.Contains(text, []byte(filepath.Dir(here))) {
		t.Errorf("it holds the path that it was built in, or %v", err)
	}
}
