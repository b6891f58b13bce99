package stories

import (
	"context"
	"debug/buildinfo"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// raced reports whether the gateway under test is built with the race detector, which
// takes several times a program's memory.
func raced(t testing.TB) bool {
	t.Helper()
	info, err := buildinfo.ReadFile(built.get(t))
	if err != nil {
		t.Fatalf("reading how the gateway was built: %v", err)
	}
	return slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "-race" && s.Value == "true" })
}

// resident is the memory of a process in octets; 0 where nobody tells.
func resident(process string) (octets int64) {
	status, err := os.ReadFile("/proc/" + process + "/status")
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(status), "VmRSS:")
	kilo, _, _ := strings.Cut(strings.TrimSpace(after), " ")
	n, _ := strconv.ParseInt(kilo, 10, 64)
	return n << 10
}

// mostResident measures the memory of the gateway's process from now on; the answer ends
// that, and is the most until then.
func (g *gateway) mostResident() (octets func() int64) {
	ctx, end := context.WithCancel(g.w.t.Context())
	process, most := g.process(), make(chan int64, 1)
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for peak := resident(process); ; peak = max(peak, resident(process)) {
			select {
			case <-ctx.Done():
				most <- peak
				return
			case <-tick.C:
			}
		}
	}()
	return func() int64 { end(); return <-most }
}

// keptBelow says how much memory the process took, which must not be more than so many
// MiB, or than these with the race detector.
func (g *gateway) keptBelow(what string, octets int64, most, withRace int64) {
	g.w.t.Helper()
	if raced(g.w.t) {
		most = withRace
	}
	g.w.t.Logf("FIGURE %s: the process takes %d MiB at most", what, octets>>20)
	if octets > most<<20 {
		g.w.t.Errorf("%s: the process takes %d MiB, want %d at most", what, octets>>20, most)
	}
}

// lasted says how long each of others' requests took.
func lasted(t testing.TB, what string, times []time.Duration) {
	t.Helper()
	slices.Sort(times)
	t.Logf("FIGURE %s: %d requests of others, each within %v; half of them within %v", what, len(times),
		times[len(times)-1].Round(100*time.Microsecond), times[len(times)/2].Round(100*time.Microsecond))
}
