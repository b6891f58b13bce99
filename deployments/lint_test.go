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
		output, err := command.CombinedOutput()
		if err != nil {
			t.Logf("go %v: %s", args, output)
		}
		return err
	}
	if run("mod", "download") != nil {
		testenv.Lacks(t, "the modules of tools/lint cannot be had: the manifests cannot be checked")
	}
	path := filepath.Join(t.TempDir(), "lint")
	if err := run("build", "-o", path, "."); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSchemas: the API's own types decode kustomize's output, and every reference has its object.
func TestSchemas(t *testing.T) {
	testenv.Long(t)
	lint, kustomize := linter(t), testenv.Tool(t, "kustomize")
	for _, folder := range []string{"kubernetes/overlays/example", "kubernetes/base"} {
		made, err := exec.CommandContext(t.Context(), kustomize, "build", folder).Output()
		if err != nil {
			t.Fatal(err)
		}
		command := exec.CommandContext(t.Context(), lint)
		command.Stdin = bytes.NewReader(made)
		if output, err := command.CombinedOutput(); err != nil || len(output) > 0 {
			t.Errorf("%s: %v\n%s", folder, err, output)
		}
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
	command := exec.CommandContext(t.Context(), testenv.Tool(t, "bash"), "-c", strings.Replace(string(build[1]), "-o /intumwa ", "-o "+path+" ", 1))
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
