package dispatcher_test

import (
	"flag"
	"os"
	"testing"

	"intumwa/internal/testenv"
)

// TestMain runs more tests in parallel than there are processors: they mostly
// wait for carriers.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "12")
	}
	os.Exit(testenv.Run(m))
}
