package stories

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// aheadVariable is by how many seconds the clock of a gateway built by wrongClock is ahead
// of its machine's; negative: behind. Go asks the kernel for the time and nobody between can
// lie to it, so such a gateway is built with a time.Now of its own: nothing else differs.
const (
	aheadVariable = "STORY_CLOCK_AHEAD"
	wrongVariable = "INTUMWA_STORIES_WRONG_CLOCK"
)

var wrongOnce = sync.OnceValues(buildWrongClock)

// wrongClock is the gateway under test with a clock that can be wrong. It is built in
// .bin, and again only when something of it has changed.
func wrongClock(t *testing.T) string {
	t.Helper()
	if path := os.Getenv(wrongVariable); path != "" {
		return path
	}
	path, err := wrongOnce()
	if err != nil {
		t.Fatalf("building a gateway whose clock can be wrong: %v", err)
	}
	return path
}

func buildWrongClock() (path string, err error) {
	dir, err := filepath.Abs("../../.bin/wrong-clock")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("looking for Go: %w", err)
	}
	in := filepath.Join(strings.TrimSpace(string(out)), "src", "time")
	source, err := os.ReadFile(filepath.Join(in, "time.go"))
	if err != nil {
		return "", err
	}
	const now = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(source), now) != 1 {
		return "", fmt.Errorf("%s/time.go does not say %q any more: how does it ask for the time now?", in, now)
	}
	replaced := map[string]string{}
	for name, text := range map[string]string{
		"time.go": strings.Replace(string(source), now, now+"\tsec += wrongBy\n", 1),
		"wrong.go": `package time

import "syscall"

// wrongBy is by how many seconds this process's clock is ahead.
var wrongBy = func() (seconds int64) {
	text, _ := syscall.Getenv("` + aheadVariable + `")
	sign := int64(1)
	for _, c := range text {
		if c == '-' {
			sign = -1
		} else {
			seconds = 10*seconds + int64(c-'0')
		}
	}
	return sign * seconds
}()
`} {
		at := filepath.Join(dir, name)
		replaced[filepath.Join(in, name)] = at
		if old, err := os.ReadFile(at); err == nil && string(old) == text {
			continue
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	at := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(at, overlay, 0o600); err != nil {
		return "", err
	}
	path = filepath.Join(dir, "intumwa")
	if out, err := exec.Command("go", "build", "-race", "-overlay", at, "-o", path, "../../cmd/intumwa").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
}
