package verifications

import (
	"testing"

	"intumwa/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }
