package stories

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"intumwa/internal/testenv"
	"intumwa/tools/carriersim"
)

// everywhere waits until every gateway answers a send of the company with this status.
func (c *company) everywhere(what string, status int, within time.Duration, to string) {
	c.w.t.Helper()
	for _, g := range c.w.gateways {
		c.w.eventually(within, what+" holds on "+g.name, func() bool { return c.triesAt(g, to, "Amahoro mwese").status == status })
	}
}

// A handset writes STOP: no process sends it anything more from this company, and nothing is charged. It writes START, and
// gets messages again. Another company's messages reach it all the time.
func TestStopAndStart(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	const within = 10 * time.Second
	w := play(t, scene{gateways: []tree{{}, {}}, config: tree{"inbound": tree{"stop_reply": "C'est fait."}}})
	shop, bank := w.company("Isoko", 100), w.company("Banki", 100)
	var route map[string]any
	w.orders(&route, "", "inbound", "route", "add", "--address", "8080", "--company", shop.number())
	to := w.number()
	writes := func(text string) {
		w.eventually(within, "a session takes it", func() bool {
			return w.lumitel.SendMO(carriersim.MO{From: strings.TrimPrefix(to, "+"), To: "8080", Text: text}) == nil
		})
	}
	writes("Arrêt svp")
	shop.everywhere("the opt-out", http.StatusBadRequest, within, to)
	w.settles(settledWithin) // the last that was accepted may be paid back
	w.paidBack()
	before := shop.credits()
	if a := shop.tries(to, "Amahoro twese"); a.Message != "The recipient has opted out of messages from this sender." || shop.credits() != before {
		t.Errorf("a send is answered %d %s and leaves %d of %d credits", a.status, a.body, shop.credits(), before)
	}
	w.becomes(bank.sends(to, "Amafaranga yawe").ID, "sent")
	w.eventually(settledWithin, "the acknowledgement", func() bool {
		return slices.ContainsFunc(w.lumitel.shown(to), func(m carriersim.Message) bool { return m.Text == "C'est fait." && m.Source == "8080" })
	})
	writes("START")
	shop.everywhere("the end of the opt-out", http.StatusOK, within, to)
	w.settles(settledWithin)
}

// cancelled is the answer of a cancellation.
type cancelled struct {
	Cancelled int64 `json:"cancelled"`
	Credits   int64 `json:"credits_returned"`
	Left      int64 `json:"left"`
}

// What a company has queued is held when the company or its sender loses its approval, goes on when both are approved again,
// and can be cancelled whole. The messages of others go their way.
func TestDisapprovalHoldsWhatIsQueued(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	w := play(t, scene{carriers: []carrier{{sim: carriersim.Options{NoFates: true}, link: tree{"tps": 10, "window": 5}}}})
	shop, other := w.company("Isoko", 1000), w.company("Ikawa", 1000)
	const queued = 500 // for longer than the walk over the outbox rests at most
	shop.bulk(queued, nil)
	var result map[string]any
	w.orders(&result, "", "company", "set", "--id", shop.number(), "--approved=false")
	waiting := func(what string) int {
		return ask[int](w, `SELECT count(*) FROM outbox WHERE company_id = `+shop.number()+what)
	}
	heldAll := func() bool { return waiting("") > 0 && waiting(` AND due_at < now() + interval '1 year'`) == 0 }
	w.eventually(settledWithin, "all that waits is held", heldAll)
	held := waiting("")
	w.becomes(other.sends(w.number(), "Amahoro mwese").ID, "sent")
	if n := waiting(""); n != held || held < 30 {
		t.Errorf("%d were held, %d are", held, n)
	}
	w.orders(&result, "", "company", "set", "--id", shop.number(), "--approved=true")
	w.eventually(settledWithin, "they go on", func() bool { return waiting("") < held })
	sender := strconv.FormatInt(ask[int64](w, `SELECT id FROM senders WHERE company_id = $1`, shop.id), 10)
	w.orders(&result, "", "sender", "set", "--id", sender, "--approved=false")
	w.eventually(settledWithin, "all that waits is held again", heldAll)
	held = waiting("")
	var stopped cancelled
	w.orders(&stopped, "", "company", "cancel", "--id", shop.number(), "--reason", "spam")
	if stopped.Cancelled != int64(held) || stopped.Left != 0 {
		t.Errorf("%d are held; %+v", held, stopped)
	}
	w.settles(finalWithin)
	w.paidBack()
	if got, want := shop.credits(), int64(1000-queued)+stopped.Cancelled; got != want {
		t.Errorf("%d credits, want %d", got, want)
	}
	w.orders(&result, "", "sender", "set", "--id", sender, "--approved=true")
	w.eventually(settledWithin, "nothing is held any more", func() bool { return ask[int](w, `SELECT count(*) FROM holds`) == 0 })
	w.becomes(shop.sends(w.number(), "Amahoro mwese").ID, "sent")
}
