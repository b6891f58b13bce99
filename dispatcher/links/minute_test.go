package links

import (
	"reflect"
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
			got := m.of("a", smpp.Totals{Accepted: uint64(10 * second), Throttled: uint64(second)},
				map[string]uint64{"ESME_RSYSERR": uint64(2 * second), "ESME_RTHROTTLED": 1})
			want := minute{int32(10 * min(second, 60)), int32(min(second, 60)), map[string]int32{}}
			if second > 0 {
				want.refused["ESME_RSYSERR"] = int32(2 * min(second, 60))
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("after %d s: %+v, want %+v", second, got, want)
			}
			time.Sleep(time.Second)
		}
		if n := len(m["a"]); n > 62 {
			t.Errorf("%d marks are kept", n)
		}
		if got := m.of("a", smpp.Totals{Accepted: 7, Throttled: 1}, map[string]uint64{"ESME_RSYSERR": 2}); !reflect.DeepEqual(
			got, minute{7, 1, map[string]int32{"ESME_RSYSERR": 2}}) {
			t.Errorf("a link that began anew: %+v", got)
		}
	})
}
