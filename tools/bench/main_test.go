package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"intumwa/internal/testenv"
)

func TestMain(m *testing.M) {
	code := testenv.Run(m)
	if builtIn != "" {
		_ = os.RemoveAll(builtIn)
	}
	os.Exit(code)
}

// built is the gateway, compiled once, in the folder builtIn.
var (
	built = sync.OnceValues(func() (file string, err error) {
		if builtIn, err = os.MkdirTemp("", "intumwa-bench-"); err != nil {
			return "", err
		}
		file = filepath.Join(builtIn, "intumwa")
		if out, err := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", builtIn, "../../cmd/intumwa",
			"../../cmd/intumwa-dev").CombinedOutput(); err != nil {
			return "", fmt.Errorf("building the gateway: %w\n%s", err, out)
		}
		return file, nil
	})
	builtIn string
)

// measurable returns private servers and the gateway.
func measurable(t *testing.T) (s *servers, binary string) {
	t.Helper()
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	if s, err = openServers(t.Context(), testenv.NewPostgresServer(t).URL(), testenv.NewRedisServer(t).URL()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s, binary
}
