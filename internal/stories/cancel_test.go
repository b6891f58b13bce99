package stories

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"intumwa/tools/carriersim"
)

// campaign sends a batch of n messages of one segment and answers its id.
func (c *company) campaign(n int) string {
	c.w.t.Helper()
	type one struct {
		To   string `json:"phone_number"`
		Text string `json:"message"`
	}
	list := make([]one, n)
	for i := range list {
		list[i] = one{c.w.number(), "Kugura " + word()}
		c.plant(list[i].To, list[i].Text)
	}
	body, err := json.Marshal(map[string]any{"sender": c.sender, "messages": list})
	if err != nil {
		c.w.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(c.w.t.Context(), http.MethodPost, "http://"+c.w.gateway.api+"/v1/sms/bulk", bytes.NewReader(body))
	if err != nil {
		c.w.t.Fatal(err)
	}
	for name, value := range map[string]string{"Authorization": "Bearer " + c.token, "Content-Type": "application/json", "Accept": "application/json"} {
		request.Header.Set(name, value)
	}
	response, err := c.w.client.Do(request)
	if err != nil {
		c.w.t.Fatal(err)
	}
	defer response.Body.Close()
	var sent struct {
		ID string `json:"batch_id"`
	}
	if err := json.NewDecoder(response.Body).Decode(&sent); err != nil || response.StatusCode != http.StatusOK {
		c.w.t.Fatalf("a bulk send was answered %d, %v", response.StatusCode, err)
	}
	return sent.ID
}

type cancelled struct {
	Cancelled int64 `json:"cancelled"`
	Credits   int64 `json:"credits_returned"`
	Left      int64 `json:"left"`
}

// A campaign is cancelled by two operators at once, again and again, while it is being carried: no message is both sent and
// paid back, none is paid back twice, and none is forgotten.
func TestCancelRacesWithDispatch(t *testing.T) {
	t.Parallel()
	const campaigns, size = 4, 200
	w := play(t, scene{
		carriers: []carrier{{sim: carriersim.Options{RespDelay: 20 * time.Millisecond}, links: 2, link: tree{"tps": 60, "window": 20}}},
		gateways: []tree{{}, {"roles": "dispatcher"}},
	})
	shop := w.company("Isoko", 10_000)
	var stopped int64
	for n := range campaigns {
		id := shop.campaign(size)
		w.eventually(finalWithin, "the campaign is on its way", func() bool { return int(w.lumitel.Stats().Submits) > n*10+5 })
		var both sync.WaitGroup
		var results [2]cancelled
		for i := range results {
			both.Go(func() {
				if err := w.admin(&results[i], "", "batch", "cancel", id, "--reason", "spam"); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		for _, r := range results {
			if r.Cancelled != r.Credits {
				t.Errorf("%+v: each has one segment", r)
			}
			stopped += r.Cancelled
		}
	}
	w.drains()
	w.settles(finalWithin)
	if n := ask[int64](w, `SELECT count(*) FROM messages WHERE failure_reason = 'cancelled'`); n != stopped || n == 0 {
		t.Errorf("%d messages are cancelled, the commands said %d", n, stopped)
	}
	if n := ask[int](w, `SELECT count(*) FROM messages m WHERE failure_reason = 'cancelled' AND EXISTS (SELECT FROM segments s WHERE s.message_id = m.id)`); n != 0 {
		t.Errorf("%d messages are cancelled and carried", n)
	}
	if got, want := int64(w.lumitel.Stats().Submits), campaigns*size-stopped; got != want {
		t.Errorf("the carrier got %d, want %d", got, want)
	}
	if n := ask[int](w, `SELECT count(*) FROM ledger l JOIN messages m ON m.ulid = l.ref WHERE l.kind = 'refund' AND m.failure_reason IS DISTINCT FROM 'cancelled'`); n != 0 {
		t.Errorf("%d messages that were not cancelled are paid back", n)
	}
	w.eventually(finalWithin, "every credit is back", func() bool { return shop.credits() == 10_000-campaigns*size+stopped })
	if n := ask[int64](w, `SELECT count(DISTINCT ref) FROM ledger WHERE kind = 'refund'`); n != stopped {
		t.Errorf("%d messages are paid back, want %d", n, stopped)
	}
	w.eventually(finalWithin, "the customer hears of all", func() bool {
		return len(shop.webhooks()) >= campaigns*size
	})
	var top []struct {
		CompanyID int64 `json:"company_id"`
		Segments  int64 `json:"segments"`
		Share     float64
	}
	w.orders(&top, "", "top", "--since", "1h")
	if len(top) != 1 || top[0].CompanyID != shop.id || top[0].Segments != campaigns*size || top[0].Share != 100 {
		t.Errorf("who sends most: %+v", top)
	}
	w.audited()
}

// What a company has queued is held when the company or its sender loses its approval, goes on when both are approved again,
// and can be cancelled whole. The messages of others go their way.
func TestDisapprovalHoldsWhatIsQueued(t *testing.T) {
	t.Parallel()
	w := play(t, scene{carriers: []carrier{{link: tree{"tps": 10, "window": 5}}}})
	shop, other := w.company("Isoko", 1000), w.company("Ikawa", 1000)
	const queued = 500 // for longer than the walk over the outbox rests at most
	shop.campaign(queued)
	var result map[string]any
	w.orders(&result, "", "company", "set", "--id", shop.number(), "--approved=false")
	waiting := func(what string) int {
		return ask[int](w, `SELECT count(*) FROM outbox WHERE company_id = `+shop.number()+what)
	}
	w.eventually(settledWithin, "all that waits is held", func() bool { return waiting("") > 0 && waiting(` AND due_at < now() + interval '1 year'`) == 0 })
	held := waiting("")
	if held < 30 {
		t.Errorf("only %d are held: it is not said in time", held)
	}
	a := other.sends(w.number(), "Amahoro mwese")
	w.becomes(a.ID, "sent")
	if n := waiting(""); n != held {
		t.Errorf("%d were held, %d are", held, n)
	}
	w.orders(&result, "", "company", "set", "--id", shop.number(), "--approved=true")
	w.eventually(settledWithin, "they go on", func() bool { return waiting("") < held })
	sender := strconv.Itoa(ask[int](w, `SELECT id FROM senders WHERE company_id = `+shop.number()))
	w.orders(&result, "", "sender", "set", "--id", sender, "--approved=false")
	w.eventually(settledWithin, "all that waits is held again", func() bool { return waiting(` AND due_at < now() + interval '1 year'`) == 0 })
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
	if n := ask[int](w, `SELECT count(*) FROM audit_log WHERE act LIKE 'company.cancel%' AND after::text LIKE '%spam%'`); n != 1 {
		t.Errorf("%d acts say why", n)
	}
	w.orders(&result, "", "sender", "set", "--id", sender, "--approved=true")
	w.eventually(settledWithin, "nothing is held any more", func() bool { return ask[int](w, `SELECT count(*) FROM holds`) == 0 })
	b := shop.sends(w.number(), "Amahoro mwese")
	w.becomes(b.ID, "sent")
	w.audited()
}
