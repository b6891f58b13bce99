package stories

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"intumwa/internal/testenv"
)

// worlds is how many stories play at once: most of a story is waiting.
const worlds = "8"

func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if !chosen {
		if err := flag.Set("test.parallel", worlds); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	code := testenv.Run(m)
	built.remove()
	release.remove()
	os.Exit(code)
}

// binaryVariable names a gateway that is built already, to be tested in place
// of the one in this checkout.
const binaryVariable = "INTUMWA_STORIES_BINARY"

// built is the gateway under test, with the race detector, and release is it as it is
// shipped: the race detector takes memory that hides what grows.
var (
	built   = binary{option: "-race", variable: binaryVariable}
	release = binary{option: "-trimpath"}
)

// binary is a gateway that is compiled once a run.
type binary struct {
	option   string
	variable string // names another one

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
		if out, err := exec.Command("go", "build", b.option, "-o", b.path, "../../cmd/intumwa").CombinedOutput(); err != nil {
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

// stage lets three stories with much traffic play at once, so that the bounds on
// time that they check speak of the product.
var stage = make(chan struct{}, 3)

// busy says that the story has much traffic.
func busy(t *testing.T) {
	t.Helper()
	stage <- struct{}{}
	t.Cleanup(func() { <-stage })
}

// chaos is how often a story breaks something: once, or so often in make test-all.
func chaos(often int) int {
	if testenv.Thorough() {
		return often
	}
	return 1
}
