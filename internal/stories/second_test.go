package stories

import (
	"slices"
	"strings"
	"testing"
	"time"

	"intumwa/tools/carriersim"
)

// seconded are two carriers, of which the second is asked for what the first
// cannot deliver; it delivers everything.
func seconded() []carrier {
	first, second := steady(), steady()
	first.sim.NoFates = false
	first.config = tree{"second_carrier": "leo"}
	return []carrier{first, second}
}

// A number is with another carrier than its prefix says: the first refuses it, or
// says that it is undeliverable. The second is asked before the customer hears of
// it, and it is paid for once.
func TestSecondCarrierIsAsked(t *testing.T) {
	t.Parallel()
	w := play(t, scene{carriers: seconded()})
	shop := w.company("Isoko", 100)
	leo := w.carriers[1]
	for text, fate := range map[string]int{
		"Amahoro": 1, "Amahoro mwese": 2, strings.Repeat("Muraho neza. ", 20): 2, // undeliverable, refused, refused in two segments
	} {
		before := leo.Stats().Accepted
		a := shop.sends(w.fated(fate), text)
		m := w.becomes(a.ID, "sent")
		if got := leo.Stats().Accepted - before; m.Carrier != leo.Name() || got != uint64(a.ItemCount) {
			t.Errorf("it is the carrier %s's, the second got %d segments of %d", m.Carrier, got, a.ItemCount)
		}
		if !slices.Contains(m.events(), "sent_on") {
			t.Errorf("its timeline is %v", m.events())
		}
		shop.hears(m.MessageID, finalWithin)
		if calls := shop.webhooksOf(m.MessageID); len(calls) != 1 {
			t.Errorf("the customer heard %d times of it", len(calls))
		}
	}
	// What failed for another reason fails.
	m := w.becomes(shop.sends(w.fated(14), "Amahoro").ID, "failed")
	if m.Carrier != w.lumitel.Name() || slices.Contains(m.events(), "sent_on") {
		t.Errorf("message show says %+v", m)
	}
	if got := shop.credits(); got != 95 {
		t.Errorf("%d of 100 credits are left, want 95", got)
	}
	sentOn := func() float64 { return w.gateway.metric("intumwa_messages_sent_on_total", `second="leo"`) }
	w.eventually(finalWithin, "three are counted", func() bool { return sentOn() >= 3 })
	if got := sentOn(); got != 3 {
		t.Errorf("%v are counted, want 3", got)
	}
	w.audited()
}

// A carrier answers long after it is asked, so that what it was sent goes out again, and
// then says of the first copy that it cannot be delivered while the second is on its way.
// The second carrier is not asked: the customer's customer might get it from both.
func TestSlowCarrierIsNotDoubled(t *testing.T) {
	t.Parallel()
	carriers := seconded()
	carriers[0].config["unknown_hold"] = "6s"
	carriers[0].link["enquire_link"], carriers[0].link["enquire_timeout"] = "1s", "4s" // a busy machine answers within
	carriers[0].link["response_timeout"] = "1s"
	w := play(t, scene{carriers: carriers})
	shop := w.company("Isoko", 100)
	leo := w.carriers[1]
	// Given up after six seconds, sent again five later; then the first answer comes, and what
	// became of it as soon as all is on its way again.
	w.lumitel.Faults(func(f *carriersim.Faults) { f.RespDelay, f.HoldReceipts = 15*time.Second, true })
	var sent []answer
	for _, text := range []string{"Amahoro", "Mwaramutse", strings.Repeat("Muraho neza. ", 20)} {
		sent = append(sent, shop.sends(w.fated(1), text))
	}
	w.eventually(30*time.Second, "all of it is on its way again", func() bool { return w.lumitel.Stats().Duplicates == 4 })
	if n := ask[int](w, `SELECT count(*) FROM messages WHERE status <> 0`); n > 0 {
		t.Fatalf("%d messages are final before the first answer", n)
	}
	w.lumitel.Faults(func(f *carriersim.Faults) { f.HoldReceipts = false })
	for _, a := range sent {
		m := w.becomes(a.ID, "failed")
		if !strings.HasPrefix(m.FailureReason, "UNDELIV") || m.Carrier != w.lumitel.Name() || slices.Contains(m.events(), "sent_on") {
			t.Errorf("message show says %+v", m)
		}
		shop.hears(m.MessageID, finalWithin)
	}
	if got := leo.Stats().Submits; got != 0 {
		t.Errorf("the second carrier got %d segments while the first had them", got)
	}
	w.lumitel.Faults(func(f *carriersim.Faults) { f.RespDelay = 0 })
	w.audited()
}

// The gateway is killed while it asks a second carrier for half of what it
// carries. Every message ends once, is paid for once and told once. None goes to the second
// carrier twice, and of what the dead gateway had submitted without an answer nothing does;
// what it had only claimed does.
func TestKilledWhileSendingOn(t *testing.T) {
	t.Parallel()
	busy(t)
	kills := chaos(10)
	w := play(t, scene{carriers: seconded()})
	shop := w.company("Isoko", 1_000_000)
	n := 600 * kills
	fates := []int{0, 1, 0, 2}
	l := shop.sendsMany(&load{messages: n, keyed: true, mixed: &mixture{
		fate: func(i int) int { return fates[i%len(fates)] },
		ends: func(int) string { return "sent" },
		tail: func(int) string { return "" },
	}})
	leo := w.carriers[1]
	for kill := range kills {
		l.reaches((kill + 1) * n / (kills + 1))
		w.gateway.kill()
		before := leo.left()
		w.gateway.start()
		w.eventually(submittingWithin+onTheWayWithin, "the second carrier is asked again", func() bool { return leo.Stats().Accepted > before })
	}
	l.finishes()
	w.drains()
	w.settles(settledWithin)
	records := shop.records()
	if len(records) != n {
		t.Fatalf("%d messages are recorded, want %d", len(records), n)
	}
	failed := 0
	for _, r := range records {
		fate := r.Number[len(r.Number)-2:]
		switch {
		case r.Status == "sent":
		case r.Status == "failed" && (fate == "01" || fate == "02"):
			failed++
		default:
			t.Errorf("message %s to %s is %s %q", r.ID, fate, r.Status, r.Reason)
		}
	}
	if failed > kills*window {
		t.Errorf("%d failed, more than were submitted and not answered when it was killed", failed)
	}
	if twice := leo.Stats().Duplicates; twice > uint64(kills*window) {
		t.Errorf("%d came twice to the second carrier", twice)
	}
	if sent, want := ask[int](w, `SELECT count(*) FROM sent_on WHERE to_carrier IS NOT NULL`), n/2-failed; sent < want || sent > n/2 {
		t.Errorf("%d were sent on, want %d", sent, want)
	}
	if got := shop.credits(); got != int64(1_000_000-n) {
		t.Errorf("%d credits are left of a million and %d messages", got, n)
	}
	w.eventually(settledWithin, "the customer heard of every message", func() bool { return len(told(shop)) == n })
	for id, words := range told(shop) {
		if slices.Sort(words); len(slices.Compact(words)) != 1 {
			t.Errorf("of message %d the customer heard %v", id, words)
		}
	}
	w.audited()
	t.Logf("%d kills: %d of %d messages failed because a dead process had submitted them, %d came twice to the second carrier",
		kills, failed, n, leo.Stats().Duplicates)
}

// told are the statuses that a company's webhooks gave, by message.
func told(c *company) map[int64][]string {
	all := map[int64][]string{}
	for _, call := range c.webhooks() {
		all[call.Data.MessageID] = append(all[call.Data.MessageID], call.Event)
	}
	return all
}
