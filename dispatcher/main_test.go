package dispatcher_test

import (
	"flag"
	"os"
	"testing"

	"intumwa/internal/testenv"
)

// TestMain lets more tests run side by side than there are processors: they
// wait for carriers more than they compute.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "12")
	}
	os.Exit(testenv.Run(m))
}
