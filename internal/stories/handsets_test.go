package stories

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"intumwa/tools/carriersim"
)

// writes has a handset send a text to an address of ours.
func (w *world) writes(from, to, text string, udh ...byte) {
	w.t.Helper()
	if len(text) >= 8 {
		w.secret(text)
	}
	w.eventually(30*time.Second, "a session that takes it", func() bool {
		return w.lumitel.SendMO(carriersim.MO{From: strings.TrimPrefix(from, "+"), To: to, Text: text, UDH: udh}) == nil
	})
}

// routed gives the messages to an address to a company.
func (c *company) routed(address string) {
	c.w.t.Helper()
	var route struct {
		RouteID int64 `json:"route_id"`
	}
	c.w.orders(&route, "", "inbound", "route", "add", "--address", address, "--company", c.number())
}

// asks has the company's endpoint ask for events.
func (c *company) asks(events string) {
	c.w.t.Helper()
	var set struct{ Events []string }
	c.w.orders(&set, "", "webhook", "set", "--company", c.number(), "--events", events)
	if strings.Join(set.Events, ",") != events {
		c.w.t.Fatalf("the endpoint asks for %v, want %s", set.Events, events)
	}
}

// calls requests an endpoint of the API.
func (c *company) calls(g *gateway, method, path, body string) (status int, answer string) {
	c.w.t.Helper()
	request, err := http.NewRequest(method, "http://"+g.api+path, strings.NewReader(body))
	if err != nil {
		c.w.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.w.client.Do(request)
	if err != nil {
		c.w.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.w.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// named lists the calls of one event.
func (c *company) named(event string) (all []call) {
	for _, call := range c.webhooks() {
		if call.Event == event {
			all = append(all, call)
		}
	}
	return all
}

// refusedWithin is how soon what somebody changes holds in every process, on a busy machine.
const refusedWithin = 10 * time.Second

// A handset writes STOP: in every process nothing is sent to it any more from this
// company, and nothing is charged. It writes START, and gets messages again. Another
// company's messages reach it all the time.
func TestStopAndStart(t *testing.T) {
	t.Parallel()
	w := play(t, scene{gateways: []tree{{}, {}}, config: tree{"inbound": tree{"stop_reply": "C'est fait."}}})
	shop, bank := w.company("Isoko", 100), w.company("Banki", 100)
	shop.routed("8080")
	to, other := w.number(), w.number()
	w.becomes(shop.sends(to, "Amahoro mwese").ID, "sent")
	w.writes(to, "8080", "Arrêt svp")
	for _, g := range w.gateways {
		w.eventually(refusedWithin, g.name+" refuses", func() bool { return shop.triesAt(g, to, "Amahoro twese").status == http.StatusBadRequest })
	}
	w.settles(settledWithin) // the last that was accepted may be paid back
	w.paidBack()
	credits, entries := shop.credits(), len(shop.entries())
	a := shop.tries(to, "Amahoro twese")
	if want := "The recipient has opted out of messages from this sender."; a.status != http.StatusBadRequest || a.Message != want {
		t.Errorf("a send is answered %d %s", a.status, a.body)
	}
	batch := fmt.Sprintf(`{"sender":"Isoko","messages":[{"phone_number":%q,"message":"Amahoro twese"},{"phone_number":%q,"message":"Amahoro twese"}]}`, other, to)
	refusal := `{"message":"Recipient #2 has opted out of messages from this sender.","opted_out":[{"recipient":2,"phone_number":"` + to + `"}]}`
	if status, text := shop.calls(w.gateways[1], "POST", "/v1/sms/bulk", batch); status != http.StatusBadRequest || text != refusal {
		t.Errorf("a batch is answered %d %s", status, text)
	}
	if shop.credits() != credits || len(shop.entries()) != entries {
		t.Errorf("refused sends were charged: %d credits of %d, %d entries of %d", shop.credits(), credits, len(shop.entries()), entries)
	}
	w.becomes(bank.sends(to, "Amafaranga yawe").ID, "sent")
	w.becomes(shop.sends(other, "Amahoro mwese").ID, "sent")
	w.eventually(settledWithin, "the acknowledgement", func() bool {
		for _, m := range w.lumitel.shown(to) {
			if m.Text == "C'est fait." && m.Source == "8080" {
				return true
			}
		}
		return false
	})
	w.writes(to, "8080", "START")
	for _, g := range w.gateways {
		w.eventually(refusedWithin, g.name+" takes it again", func() bool { return shop.triesAt(g, to, "Murakaza neza").status == http.StatusOK })
	}
	w.settles(settledWithin)
	if status, text := shop.calls(w.gateway, "GET", "/v1/opt-outs", ""); status != http.StatusOK || text != `{"data":[],"next_cursor":null}` {
		t.Errorf("the list is %d %s", status, text)
	}
}

// A handset writes STOP while messages to it wait: some are scheduled, alone and in a batch, others are of a campaign that goes
// out slowly. None of them is sent any more, but for the few that a dispatcher has in hand; the company is told of each as of
// every failure, and each is paid back once. Another company's message goes out in its time.
func TestStopHoldsForWhatWasAccepted(t *testing.T) {
	t.Parallel()
	const credits, many, tps, window = 1000, 300, 20, 5
	w := play(t, scene{
		carriers: []carrier{{sim: carriersim.Options{NoFates: true}, link: tree{"tps": tps, "window": window}}},
		gateways: []tree{{}, {"roles": "dispatcher"}},
	})
	shop, bank := w.company("Isoko", credits), w.company("Banki", 100)
	shop.routed("8080")
	to, other := w.number(), w.number()
	later := soon(20 * 24 * time.Hour)
	var alone, banks answer
	shop.requests(http.MethodPost, "/v1/sms", map[string]any{"phone_number": to, "sender": shop.sender, "message": "Impanuro " + word(), "send_at": later}, &alone)
	bank.requests(http.MethodPost, "/v1/sms", map[string]any{"phone_number": to, "sender": bank.sender, "message": "Impanuro " + word(), "send_at": later}, &banks)
	bulk := func(n int, more map[string]any) (id string) {
		list := make([]map[string]any, n)
		for i := range list {
			list[i] = map[string]any{"phone_number": []string{to, other}[i%2], "message": "Kugura kuwambere " + word()}
		}
		body := map[string]any{"sender": shop.sender, "messages": list}
		for name, value := range more {
			body[name] = value
		}
		var sent struct {
			ID string `json:"batch_id"`
		}
		shop.requests(http.MethodPost, "/v1/sms/bulk", body, &sent)
		return sent.ID
	}
	scheduled, campaign := bulk(2, map[string]any{"send_at": later}), bulk(many, nil)
	w.writes(to, "8080", "Arrêt svp")
	w.eventually(refusedWithin, "it is on the list", func() bool { return ask[int](w, `SELECT count(*) FROM opt_outs`) == 1 })
	before := len(w.lumitel.shown(to))
	w.comes(0)
	w.dwindles("scheduled", `SELECT count(*) FROM scheduled`, onTheWayWithin)
	w.drains()
	w.settles(settledWithin)

	got := len(w.lumitel.shown(to)) - 1 // but for the bank's
	if most := 2 * (tps/4 + window); got-before > most {
		t.Errorf("%d went out after the STOP, want %d at most", got-before, most)
	}
	stopped := 1 + 1 + many/2 - got
	w.becomes(banks.ID, "sent")
	var shown struct {
		Status string `json:"status"`
		Reason string `json:"failure_reason"`
	}
	if shop.requests(http.MethodGet, "/v1/sms/"+alone.ID, nil, &shown); shown.Status != "failed" || shown.Reason != "opted_out" {
		t.Errorf("the scheduled message is %s (%s)", shown.Status, shown.Reason)
	}
	for id, failed := range map[string]int{scheduled: 1, campaign: many/2 - got} {
		var batch struct {
			Count   int `json:"recipients_count"`
			Credits int `json:"item_count"`
			Counts  struct{ Pending, Sent, Failed int }
		}
		if shop.requests(http.MethodGet, "/v1/sms/batches/"+id, nil, &batch); batch.Counts.Failed != failed || batch.Counts.Sent != batch.Count-failed || batch.Counts.Pending != 0 {
			t.Errorf("of a batch %+v, want %d failed", batch, failed)
		}
	}
	if n := ask[int](w, `SELECT count(*) FROM messages WHERE status = 2 AND failure_reason = 'opted_out'`); n != stopped || stopped < many/4 {
		t.Errorf("%d messages were stopped, want %d", n, stopped)
	}
	if n := ask[int](w, `SELECT count(*) FROM messages m JOIN segments s ON s.message_id = m.id WHERE failure_reason = 'opted_out'`); n != 0 {
		t.Errorf("of %d a carrier has something", n)
	}
	w.eventually(finalWithin, "every credit is back", func() bool { return shop.credits() == int64(credits-(1+2+many)+stopped) })
	if n := ask[int](w, `SELECT count(DISTINCT ref) FROM ledger WHERE kind = 'refund'`); n != stopped || ask[int](w, `SELECT count(*) FROM ledger WHERE kind = 'refund'`) != stopped {
		t.Errorf("%d messages are paid back, want %d, each once", n, stopped)
	}
	w.eventually(finalWithin, "the company hears of all", func() bool { return len(shop.named("sms.failed")) >= stopped })
	if m := w.message(alone.ID); !bytes.Contains(shop.hears(m.MessageID, finalWithin).body, []byte(`"event":"sms.failed"`)) {
		t.Error("of the scheduled message the webhook says something else")
	}
	w.audited()
}

// A handset writes a long text. Its three parts come by two links to two processes, out
// of order, and one of them twice: the company gets it once, whole.
func TestLongMessageOfAHandset(t *testing.T) {
	t.Parallel()
	w := play(t, scene{carriers: []carrier{{links: 2}}, gateways: []tree{{}, {}}})
	shop := w.company("Isoko", 100)
	shop.routed("8080")
	shop.asks("balance.low,sms.received")
	from := w.number()
	parts := []string{"Ndashaka kugura ibitoke mirongo ibiri, ", "n'ibirayi ibiro cumi na bitanu, ", "ejo mu gitondo."}
	for _, n := range []int{2, 0, 0, 1} {
		w.writes(from, "8080", parts[n], 5, 0, 3, 42, 3, byte(n+1))
	}
	w.eventually(settledWithin, "the webhook", func() bool { return len(shop.named("sms.received")) > 0 })
	var said struct {
		Timestamp string
		Data      struct {
			InboundID  int64  `json:"inbound_id"`
			From       string `json:"from"`
			To         string `json:"to"`
			Message    string `json:"message"`
			ReceivedAt string `json:"received_at"`
		}
	}
	got := shop.named("sms.received")
	if err := json.Unmarshal(got[0].body, &said); err != nil || said.Data.From != from || said.Data.To != "8080" || said.Data.Message != strings.Join(parts, "") || said.Data.ReceivedAt != said.Timestamp {
		t.Errorf("the webhook says %s (%v)", got[0].body, err)
	}
	_, data, _ := bytes.Cut(bytes.TrimSuffix(got[0].body, []byte("}")), []byte(`"data":`))
	if status, text := shop.calls(w.gateways[1], "GET", fmt.Sprint("/v1/inbound/", said.Data.InboundID), ""); status != http.StatusOK || text != string(data) {
		t.Errorf("it is looked up as %d %s, told as %s", status, text, data)
	}
	w.eventually(settledWithin, "all four parts are looked at", func() bool {
		return ask[int](w, `SELECT count(*) FROM inbound WHERE outcome = 'routed'`) == 3 && ask[int](w, `SELECT count(*) FROM inbound WHERE outcome = 'duplicate'`) == 1
	})
	// What the contract has goes out as ever beside it.
	m := w.becomes(shop.sends(from, "Murakoze cane").ID, "sent")
	at := m.SentAt.UTC().Format("2006-01-02T15:04:05-07:00")
	want := fmt.Sprintf(`{"event":"sms.sent","timestamp":"%s","data":{"message_id":%d,"phone_number":"%s","status":"sms.sent","sent_at":"%s","failed_at":null}}`, at, m.MessageID, from, at)
	if c := shop.hears(m.MessageID, settledWithin); string(c.body) != want {
		t.Errorf("sms.sent is %s, want %s", c.body, want)
	}
	if n := len(shop.named("sms.received")); n != 1 {
		t.Errorf("%d webhooks of one message", n)
	}
}

// The process that tells the company of a handset's message is killed while it does so:
// after the next start the company is told, under the same id.
func TestKilledWhileTelling(t *testing.T) {
	t.Parallel()
	w := play(t, scene{})
	shop := w.silentCompany("Isoko", 100)
	var calls atomic.Int64
	shop.listens(func(_ http.ResponseWriter, r *http.Request) {
		if calls.Add(1) == 1 {
			<-r.Context().Done()
		}
	})
	shop.routed("8080")
	shop.asks("sms.received")
	w.writes(w.number(), "8080", "Nimwitabe telefone")
	w.eventually(settledWithin, "the call that hangs", func() bool { return calls.Load() == 1 })
	w.gateway.kill()
	w.gateway.start()
	w.eventually(settledWithin, "it is told again", func() bool { return len(shop.named("sms.received")) >= 2 })
	w.eventually(settledWithin, "it is recorded", func() bool { return ask[int](w, `SELECT count(*) FROM webhook_attempts WHERE status = 200`) > 0 })
	ids := map[string]bool{}
	for _, c := range shop.named("sms.received") {
		ids[c.header.Get("webhook-id")+" "+string(c.body)] = true
	}
	if len(ids) != 1 {
		t.Errorf("it was told as %v", ids)
	}
	if n := ask[int](w, `SELECT count(*) FROM webhook_deliveries`); n != 1 {
		t.Errorf("%d events of one message", n)
	}
}
