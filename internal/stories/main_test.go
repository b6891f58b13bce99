package stories

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"intumwa/internal/testenv"
)

// worlds is how many stories run at once on two processors. With five, the longest took four times as long.
const worlds = 3

func TestMain(m *testing.M) {
	testenv.Parallel(worlds)
	code := testenv.Run(m)
	built.remove()
	release.remove()
	os.Exit(code)
}

// binaryVariable names a built gateway to test instead of this checkout.
const binaryVariable = "INTUMWA_STORIES_BINARY"

// built is the gateway under test, in make test-all with the race detector: it takes four times the processor, and the
// packages' own tests run under it in make test too. release is the shipped build: the detector's memory hides growth.
var (
	built   = binary{race: testenv.Thorough(), variable: binaryVariable}
	release = binary{}
)

// binary is a gateway that is compiled once per run.
type binary struct {
	race     bool
	variable string // the variable that replaces it

	once sync.Once
	dir  string
	path string
	err  error
}

func (b *binary) get(t testing.TB) string {
	t.Helper()
	b.once.Do(func() {
		if b.path = os.Getenv(b.variable); b.path != "" {
			return
		}
		if b.dir, b.err = os.MkdirTemp("", "intumwa-stories-"); b.err != nil {
			return
		}
		b.path = filepath.Join(b.dir, "intumwa")
		if out, err := exec.Command("go", "build", "-race="+strconv.FormatBool(b.race), "-trimpath", "-ldflags=-s -w", "-o",
			b.path, "../../cmd/intumwa").CombinedOutput(); err != nil {
			b.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if b.err != nil {
		t.Fatalf("building the gateway: %v", b.err)
	}
	return b.path
}

func (b *binary) remove() {
	b.once.Do(func() {})
	if b.dir != "" {
		_ = os.RemoveAll(b.dir)
	}
}

// stage admits three busy stories at once, so that their time limits measure the product.
var stage = make(chan struct{}, 3)

// busy marks a story with much traffic.
func busy(t *testing.T) {
	t.Helper()
	stage <- struct{}{}
	t.Cleanup(func() { <-stage })
}

// chaos is the number of faults in a story: one, or often in make test-all.
func chaos(often int) int {
	if testenv.Thorough() {
		return often
	}
	return 1
}
