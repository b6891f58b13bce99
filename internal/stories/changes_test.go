package stories

import (
	"net/http"
	"strconv"
	"testing"
	"time"
)

// atOnce is how soon an operator's change takes effect in every process: less than the age of
// cached rows, and long enough for a loaded machine.
const atOnce = 1500 * time.Millisecond

// An operator's change takes effect in every process at once, also after the connections for
// notices were cut.
func TestChangesHoldOnEveryProcess(t *testing.T) {
	t.Parallel()
	w := play(t, scene{gateways: []tree{{"roles": "api,dispatcher,webhooks"}, {"roles": "api"}}})
	shop, other := w.company("Isoko", 1000), w.company("Ikawa", 1000)
	everywhere := func(what string, c *company, status int) {
		t.Helper()
		began := time.Now()
		for _, g := range w.gateways {
			for {
				late := time.Since(began) > atOnce // what is asked now must be answered by the change
				if c.triesAt(g, w.number(), "x").status == status {
					break
				}
				if late {
					t.Errorf("%s does not hold on %s within %v", what, g.name, atOnce)
					return
				}
				time.Sleep(5 * time.Millisecond)
			}
		}
	}
	var result map[string]any
	for range 3 {
		everywhere("an approval", shop, http.StatusOK)
		everywhere("another's", other, http.StatusOK)
		w.orders(&result, "", "company", "set", "--id", shop.number(), "--approved=false")
		everywhere("what was taken back", shop, http.StatusBadRequest)
		w.orders(&result, "", "company", "set", "--id", shop.number(), "--approved=true")
		everywhere("an approval", shop, http.StatusOK)
		// Nobody hears the next one: who comes back forgets all.
		if n := ask[int](w, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE '% notices' AND state = 'idle' AND query <> ''`); n == 0 {
			t.Error("nobody listens")
		}
		w.orders(&result, "", "sender", "set", "--id", senderOf(shop), "--approved=false")
		everywhere("what nobody heard", shop, http.StatusBadRequest)
		w.orders(&result, "", "sender", "set", "--id", senderOf(shop), "--approved=true")
	}
	w.orders(&result, "", "token", "revoke", "--id", strconv.FormatInt(shop.tokenID, 10))
	everywhere("a revocation", shop, http.StatusUnauthorized)
	everywhere("another's", other, http.StatusOK)
	w.drains()
}

func senderOf(c *company) string {
	c.w.t.Helper()
	return strconv.FormatInt(ask[int64](c.w, `SELECT id FROM senders WHERE company_id = $1`, c.id), 10)
}
