package dispatcher_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"intumwa/internal/testenv"
)

// TestMain lets more tests run side by side than there are processors: they
// wait for carriers more than they compute. When all have passed, Wireshark
// reads what they had the dispatcher emit.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "12")
	}
	code := testenv.Run(m)
	if code == 0 {
		report, err := checkCapture()
		if err != nil {
			fmt.Fprintf(os.Stderr, "what the tests had the dispatcher emit:\n%v\n", err)
			code = 1
		}
		if testing.Verbose() {
			fmt.Println(report)
		}
	}
	os.Exit(code)
}
