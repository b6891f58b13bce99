package api

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"intumwa/internal/testenv"
)

// workshop is a folder with the OpenAPI document as it is served, in which a test runs
// programs.
type workshop struct {
	t   *testing.T
	dir string
	env []string
}

func newWorkshop(t *testing.T) (*workshop, *world) {
	t.Helper()
	w := newWorld(t, worldOptions{}).settle()
	shop := &workshop{t, t.TempDir(), append(os.Environ(), "BASE_URL="+w.server.URL+"/v1", "TOKEN="+w.tokens["live"], "no_proxy=127.0.0.1")}
	shop.write("openapi.json", w.do("", "GET", "/v1/openapi.json", "").body)
	return shop, w
}

func (s *workshop) write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *workshop) copy(from, to string) {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", from))
	if err != nil {
		s.t.Fatal(err)
	}
	s.write(to, string(text))
}

// try runs a program in the folder.
func (s *workshop) try(program string, args ...string) (string, error) {
	cmd := exec.CommandContext(s.t.Context(), program, args...)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// run is try of what must not fail.
func (s *workshop) run(program string, args ...string) string {
	s.t.Helper()
	out, err := s.try(program, args...)
	if err != nil {
		s.t.Fatalf("%s %v: %v\n%s", filepath.Base(program), args, err, out)
	}
	return out
}

// fetch is try of what asks a registry, without which the test cannot go on.
func (s *workshop) fetch(program string, args ...string) {
	s.t.Helper()
	if out, err := s.try(program, args...); err != nil {
		testenv.Lacks(s.t, fmt.Sprintf("%s %v cannot fetch what it needs: %v\n%s", filepath.Base(program), args, err, out))
	}
}

// A Go client as oapi-codegen generates it, without special flags, speaks to the
// gateway.
func TestGeneratedGoClient(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	codegen := testenv.Tool(t, "oapi-codegen")
	s, _ := newWorkshop(t)
	s.env = append(s.env, "GOFLAGS=-mod=mod", "GOWORK=off")
	s.write("client/client.go", s.run(codegen, "-generate", "types,client", "-package", "client", "openapi.json"))
	s.copy("client.go.txt", "main.go")
	s.write("go.mod", "module example\n\ngo 1.24\n")
	s.fetch("go", "get", "github.com/oapi-codegen/runtime@v1.8.0")
	s.fetch("go", "mod", "tidy")
	if out := s.run("go", "run", "."); !anyULID.MatchString(out) || !strings.Contains(out, "pending") {
		t.Errorf("the client says %q", out)
	}
}

// A TypeScript client with the types that openapi-typescript generates is checked by
// tsc and speaks to the gateway.
func TestGeneratedTypeScriptClient(t *testing.T) {
	t.Parallel()
	testenv.Long(t)
	npm, node := testenv.Tool(t, "npm"), testenv.Tool(t, "node")
	s, _ := newWorkshop(t)
	s.copy("typescript/package.json", "package.json")
	s.copy("typescript/client.ts", "client.ts")
	s.fetch(npm, "install", "--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts", "--prefer-offline")
	s.run(node, "node_modules/openapi-typescript/bin/cli.js", "openapi.json", "-o", "api.d.ts")
	s.run(node, "node_modules/typescript/bin/tsc", "--strict", "--target", "es2022", "--lib", "es2022,dom", "--module", "esnext",
		"--moduleResolution", "bundler", "--skipLibCheck", "client.ts")
	if out := s.run(node, "client.js"); !anyULID.MatchString(out) || !strings.Contains(out, "pending") {
		t.Errorf("the client says %q", out)
	}
}
