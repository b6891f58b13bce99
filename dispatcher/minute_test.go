package dispatcher

import (
	"testing"
	"testing/synctest"
	"time"

	"intumwa/smpp"
)

// TestMinute: a link's traffic covers the last minute, also after a restart,
// and needs constant memory.
func TestMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := minutes{}
		for second := range 300 {
			got := m.of("a", smpp.Totals{Accepted: uint64(10 * second), Throttled: uint64(second)})
			if want := (minute{int32(10 * min(second, 60)), int32(min(second, 60))}); got != want {
				t.Fatalf("after %d s: %+v, want %+v", second, got, want)
			}
			time.Sleep(time.Second)
		}
		if n := len(m["a"]); n > 62 {
			t.Errorf("%d marks are kept", n)
		}
		if got := m.of("a", smpp.Totals{Accepted: 7, Throttled: 1}); got != (minute{7, 1}) {
			t.Errorf("a link that began anew: %+v", got)
		}
	})
}
