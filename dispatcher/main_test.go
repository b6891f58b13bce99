package dispatcher_test

import (
	"testing"

	"intumwa/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }
