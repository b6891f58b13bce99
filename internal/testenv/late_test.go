package testenv

import (
	"strings"
	"testing"
	"time"
)

// TestLateAnswers: both servers answer through the relay, and each answer is late when all
// are to be.
func TestLateAnswers(t *testing.T) {
	postgres, redis := shared.postgres.get(t), shared.redis.get(t)
	asks := map[string]func(url string) error{
		postgres: func(url string) error { return execute(url, "SELECT 1") },
		redis:    func(url string) error { return dialRedis(t, url).Ping(t.Context()).Err() },
	}
	for _, percent := range []string{"0", "100"} {
		t.Setenv(lateVariable, percent)
		for address, ask := range asks {
			relayed, err := late(address)
			if err != nil {
				t.Fatal(err)
			}
			if relayed == address {
				t.Error("the relay is not in the URL")
			}
			began := time.Now()
			if err := ask(relayed); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); percent == "100" && took < leastLate {
				t.Errorf("answered after %v, want %v or more", took, leastLate)
			}
		}
	}
	for _, wrong := range []string{"x", "-1", "101", "2.5", "2 %"} {
		t.Setenv(lateVariable, wrong)
		if _, err := late(redis); err == nil || !strings.Contains(err.Error(), lateVariable) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
