package stories

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
)

// Many send at once, by two processes, until the credits run low: that is told once, and
// once more when it happens again.
func TestLowBalanceIsToldOnce(t *testing.T) {
	t.Parallel()
	w := play(t, scene{gateways: []tree{{}, {}}})
	shop := w.company("Isoko", 150)
	shop.asks("balance.low")
	var set struct {
		LowBalance []int64 `json:"low_balance"`
	}
	w.orders(&set, "", "company", "set", "--id", shop.number(), "--low-balance", "20, 100")
	if fmt.Sprint(set.LowBalance) != "[100 20]" {
		t.Fatalf("thresholds %v", set.LowBalance)
	}
	send := func(messages int) {
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() {
				for range messages / 10 {
					if a := shop.triesAt(w.gateways[i%2], w.number(), "Amahoro mwese"); a.status != http.StatusOK {
						t.Errorf("a send is answered %d %s %v", a.status, a.body, a.err)
					}
				}
			})
		}
		all.Wait()
	}
	low := func() (said []string) {
		for _, c := range shop.named("balance.low") {
			var body struct {
				Data struct{ Credits, Threshold int64 }
			}
			if err := json.Unmarshal(c.body, &body); err != nil || body.Data.Credits >= body.Data.Threshold {
				t.Errorf("%s, %v", c.body, err)
			}
			said = append(said, fmt.Sprint(body.Data.Threshold))
		}
		return said
	}
	send(100) // 50 are left
	w.eventually(settledWithin, "the first webhook", func() bool { return len(low()) > 0 })
	send(20) // and 30
	w.settles(settledWithin)
	if got := low(); fmt.Sprint(got) != "[100]" {
		t.Errorf("told of %v, want 100 once", got)
	}
	var credits struct{ Credits int64 }
	w.orders(&credits, "", "credits", "add", "--company", shop.number(), "--amount", "100", "--note", "more")
	shop.granted += 100
	w.eventually(settledWithin, "it is seen to be above", func() bool {
		return ask[bool](w, `SELECT NOT low FROM balance_warnings WHERE threshold = 100 AND company_id = $1`, shop.id)
	})
	send(120) // 10 are left: both thresholds
	w.eventually(settledWithin, "the others", func() bool { return len(low()) >= 3 })
	w.settles(settledWithin)
	count := map[string]int{}
	for _, threshold := range low() {
		count[threshold]++
	}
	if count["100"] != 2 || count["20"] != 1 || len(count) != 2 {
		t.Errorf("told of %v, want 100 twice and 20 once", count)
	}
}
