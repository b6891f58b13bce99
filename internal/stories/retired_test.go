package stories

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"regexp"
	"syscall"
	"testing"
	"time"

	"intumwa/tools/carriersim"
)

// closing is a carrier slower than the load, so that messages wait for it.
func closing() carrier {
	c := steady()
	c.link = tree{"window": window, "tps": 100}
	return c
}

// retired is what `admin carrier retire` prints.
type retired struct {
	Messages   int64 `json:"messages"`
	HandedOver int64 `json:"handed_over"`
	Failed     int64 `json:"failed"`
	Returned   int64 `json:"credits_returned"`
	Left       int64 `json:"left"`
}

// A carrier is retired to another one under load, and a gateway is killed meanwhile. Nothing is lost or charged twice,
// at most one window of each link arrives twice, and the carrier gets nothing new.
func TestRetiredToAnother(t *testing.T) {
	t.Parallel()
	busy(t)
	w := play(t, scene{carriers: []carrier{closing(), steady()}, gateways: []tree{{}, {}}})
	l := w.company("Isoko", 1_000_000).sendsMany(
		&load{messages: 1200, keyed: true, at: func(n int) *gateway { return w.gateways[n%2] }})
	l.reaches(400)
	var dry, done retired
	w.orders(&dry, "", "carrier", "retire", "--name", "lumitel", "--to", "leo", "--dry-run")
	if dry.Messages == 0 {
		t.Errorf("nothing waits: %+v", dry)
	}
	acted := make(chan error, 1)
	go func() { acted <- w.admin(&done, "", "carrier", "retire", "--name", "lumitel", "--to", "leo") }()
	w.eventually(onTheWayWithin, "leo gets messages", func() bool { return w.carriers[1].Stats().Accepted > 0 })
	w.gateways[1].kill()
	w.gateways[1].start()
	if err := <-acted; err != nil {
		t.Fatal(err)
	}
	l.adds(2 * window) // one of each link
	if done.HandedOver == 0 && done.Left == 0 {
		t.Errorf("nothing was handed over: %+v", done)
	}
	w.silentSince("lumitel")
}

// silentSince checks that a retired carrier got nothing new a moment after the act.
func (w *world) silentSince(carrier string) {
	w.t.Helper()
	const moment = 4 * time.Second // less than without a notice, which takes some milliseconds on an idle machine
	if n := scalar[int](w, `SELECT count(*) FROM messages m JOIN retired_carriers r ON r.carrier = m.carrier
		WHERE m.created_at > r.at + $1::interval`, moment); n > 0 {
		w.t.Errorf("%d messages were routed to %s later", n, carrier)
	}
	if n := scalar[int](w, `SELECT count(*) FROM segments s JOIN retired_carriers r USING (carrier)
		WHERE s.submitted_at > r.at + $1::interval`, moment); n > 0 {
		w.t.Errorf("%d segments went to %s later", n, carrier)
	}
}

// A carrier closes under load, and no other takes over. What it has is settled by its receipts; everything else fails
// at once and is refunded, also what is scheduled. The customer hears of each message once.
func TestRetiredToNone(t *testing.T) {
	t.Parallel()
	busy(t)
	slow := closing()
	slow.sim = carriersim.Options{NoFates: true, RespDelay: 10 * time.Millisecond, ReceiptDelay: 2 * time.Second}
	w := play(t, scene{carriers: []carrier{slow}})
	c := w.company("Isoko", 1_000_000)
	const later = 20
	c.bulk(later, tree{"send_at": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)})
	l := c.sendsMany(&load{messages: 5000, senders: 16, pause: 20 * time.Millisecond})
	l.reaches(400)
	var done retired
	w.orders(&done, "", "carrier", "retire", "--name", "lumitel", "--to", "refuse")
	l.ends()
	l.onlyAnswers(200, 400)
	w.drains()
	w.settles(settledWithin)
	arrived := map[string]int{}
	for _, m := range w.lumitel.Messages() {
		arrived[m.Text] += 1 + m.Duplicates
	}
	records, failed, kept := c.records(), int64(0), int64(0)
	for _, r := range records {
		switch n := arrived[r.Body]; {
		case r.Status == "sent" && n == 1:
			kept += r.Segments
		case r.Status == "failed" && n == 0 && r.Reason == "carrier_closed":
			failed++
		default:
			t.Errorf("message %s is %s (%s) and arrived %d times", r.ID, r.Status, r.Reason, n)
		}
	}
	if want := int(l.accepted.Load()) + later; len(records) != want {
		t.Errorf("%d messages are recorded, %d were accepted", len(records), want)
	}
	if failed < later || kept == 0 || done.Failed == 0 || done.Failed != done.Returned {
		t.Errorf("%d failed, %d credits are kept, the command: %+v", failed, kept, done)
	}
	if got, want := c.credits(), c.granted-kept; got != want {
		t.Errorf("the company has %d credits, want %d", got, want)
	}
	w.comesTrue(settledWithin, func() bool { return len(c.webhooks()) >= len(records) })
	heard := map[int64]string{}
	for _, hook := range c.webhooks() {
		if _, twice := heard[hook.Data.MessageID]; twice {
			t.Errorf("message %d has two webhooks", hook.Data.MessageID)
		}
		heard[hook.Data.MessageID] = hook.Event
	}
	for _, r := range records {
		if got := heard[r.MessageID]; got != "sms."+r.Status {
			t.Errorf("message %s is %s, and its webhook says %q", r.ID, r.Status, got)
		}
	}
	w.silentSince("lumitel")
	w.audited()
	w.t.Logf("%d messages: %d failed, answers %v; the command %+v", len(records), failed, l.answered(), done)
}

// reloads changes the carriers of a running gateway's configuration by SIGHUP.
func (g *gateway) reloads(carriers ...tree) {
	g.w.t.Helper()
	text, err := os.ReadFile(g.config)
	config := tree{}
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	if config["carriers"] = carriers; err == nil {
		text, err = json.Marshal(config)
	}
	if err == nil {
		err = os.WriteFile(g.config, text, 0o600)
	}
	if err != nil {
		g.w.t.Fatalf("changing the configuration: %v", err)
	}
	before := bytes.Count(g.logText(), []byte("configuration_reloaded"))
	signal(g.w.t, g, syscall.SIGHUP)
	g.w.eventually(finalWithin, "the configuration is reloaded",
		func() bool { return bytes.Count(g.logText(), []byte("configuration_reloaded")) > before })
}

// A carrier is added and changed by reload under load, retired, and removed by reload when its last receipt has come.
// Nothing is lost, and nothing arrives twice.
func TestCarrierComesAndGoes(t *testing.T) {
	t.Parallel()
	busy(t)
	other := closing()
	w := play(t, scene{carriers: []carrier{steady(), other}, dark: true})
	lumitel, leo := w.lumitel.section().over(tree{"default": true}), w.carriers[1].section()
	w.gateway.extra = w.gateway.extra.over(tree{"carriers": []tree{lumitel}})
	w.gateway.configure()
	w.gateway.start()
	l := w.company("Isoko", 1_000_000).sendsMany(
		&load{messages: 100_000, senders: 8, keyed: true, pause: 40 * time.Millisecond})
	l.reaches(100)
	more := func(what string, of *smsc, change func()) {
		t.Helper()
		change()
		before := of.Stats().Accepted
		w.eventually(onTheWayWithin, what, func() bool { return of.Stats().Accepted > before+20 })
	}
	lumitel["prefixes"], leo["prefixes"] = []string{"62"}, []string{w.lumitel.prefix}
	more("leo has joined and carries", w.carriers[1], func() { w.gateway.reloads(lumitel, leo) })
	leo = leo.over(
		tree{"confirm": "receipt", "links": []tree{leo["links"].([]tree)[0].over(tree{"system_type": "new", "tps": 50})}})
	more("leo is changed and carries", w.carriers[1], func() { w.gateway.reloads(lumitel, leo) })
	more("lumitel carries what leo had", w.lumitel,
		func() { w.orders(&retired{}, "", "carrier", "retire", "--name", "leo", "--to", "lumitel") })
	w.dwindles("without leo's report", `SELECT count(*) FROM messages WHERE status = 0 AND carrier = 'leo'`, settledWithin)
	more("lumitel carries after leo has left", w.lumitel, func() { w.gateway.reloads(lumitel) })
	l.ends()
	l.adds(0)
	w.eventually(finalWithin, "no metric speaks of leo's backlog", func() bool {
		return w.gateway.metric("intumwa_carrier_info", `carrier="leo"`) == 0 &&
			!w.gateway.shows("intumwa_queue_oldest_age_seconds", `carrier="leo"`)
	})
}

// shows reports whether a metric has a series with a label.
func (g *gateway) shows(name, label string) bool {
	g.w.t.Helper()
	response, err := g.w.client.Get("http://" + g.ops + "/metrics")
	if err != nil {
		g.w.t.Fatalf("reading the metrics: %v", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		g.w.t.Fatalf("reading the metrics: %v", err)
	}
	return regexp.MustCompile(`(?m)^` + name + `\{[^}]*` + regexp.QuoteMeta(label)).Match(text)
}
