package dispatcher_test

import (
	"testing"

	"intumwa/internal/testenv"
)

// TestMain runs more tests in parallel than there are processors: they often wait for carriers.
func TestMain(m *testing.M) {
	testenv.Parallel(5)
	testenv.Main(m)
}
