package stories

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"intumwa/internal/testenv"
	"intumwa/tools/carriersim"
)

// unanswered is a message in `admin unanswered`.
type unanswered struct {
	ID           string `json:"id"`
	To           string `json:"to"`
	Receipts     int    `json:"receipts"`
	ReceiptState string `json:"receipt_state"`
}

// decided is the output of `admin unanswered send` and `settle`.
type decided struct {
	Messages int `json:"messages"`
	Passed   int `json:"passed"`
}

// The database and its disk are destroyed under load, and the operators' script restores an earlier moment. The ledger
// of that moment is exact. Messages that waited then are held, because the carrier may have got some of them since.
// Later receipts identify those to the operator, and also messages that were accepted after the moment and are lost.
// The operator settles the delivered ones and sends the rest; nothing arrives twice. Redis keeps its state.
func TestRestoredToAMoment(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	busy(t)
	for _, echoes := range []bool{false, true} {
		t.Run(map[bool]string{false: "no echo", true: "echoed references"}[echoes],
			func(t *testing.T) { restoredToAMoment(t, echoes) })
	}
}

// campaignOf is the campaign's size: large enough that some messages wait on any machine.
const campaignOf = 1000

func restoredToAMoment(t *testing.T, echoes bool) {
	slow := steady()
	slow.sim.EchoReference = echoes
	slow.link = tree{"window": window, "tps": 100}
	w := play(t, scene{ownPostgres: true, carriers: []carrier{slow}, dark: true})
	keeps := w.keepsBackups()
	w.gateway.start()
	w.bound()
	shop := w.company("Isoko", 1_000_000)
	l := shop.sendsMany(&load{messages: 100_000, keyed: true, senders: 4, pause: 80 * time.Millisecond})
	l.reaches(50)
	keeps.does("base")
	base := time.Now()
	_, campaign := shop.bulk(campaignOf, nil) // it mostly waits: single messages go first
	w.eventually(patience, "the base backup is older than a second",
		func() bool { return time.Since(base) > 1100*time.Millisecond })
	// No receipt arrives from shortly before that moment on: one from the lost time would match nothing. Those in
	// flight are answered, so they are committed.
	w.lumitel.Faults(func(f *carriersim.Faults) { f.HoldReceipts = true })
	w.eventually(settledWithin, "no receipt is under way",
		func() bool { s := w.lumitel.Stats(); return s.Confirmed == s.Receipts })
	single, bulk := w.has(l.word), w.has(campaign)
	moment := scalar[string](w, `SELECT clock_timestamp()::text`)
	accepted := int(l.accepted.Load())
	w.eventually(patience, "the carrier has had some of what waited at the moment, and of what was accepted later",
		func() bool {
			return w.has(campaign) > bulk+2*window && w.has(l.word) > max(single, accepted)+20
		})
	keeps.archived()
	l.ends()

	w.gateway.kill()
	w.postgresServer.Kill()
	if err := os.RemoveAll(keeps.data); err != nil {
		t.Fatal(err)
	}
	carried := w.lumitel.left()
	keeps.does("restore", moment)
	w.postgresServer.Start()
	keeps.does("finish")
	w.pool.Reset()

	// The restored records, before any process starts.
	records := map[string]record{}
	spent := int64(0)
	for _, r := range shop.records() {
		records[r.Body] = r
		spent += r.Segments
	}
	if got, want := shop.credits(), shop.granted-spent; got != want {
		t.Errorf("the company has %d credits, want %d", got, want)
	}
	w.audited()
	waiting := scalar[int](w, `SELECT count(*) FROM outbox`)
	var restored struct {
		Last int64 `json:"last_message_id"`
		Next int64 `json:"next_message_id"`
		Held int   `json:"held"`
	}
	w.orders(&restored, "", "restored")
	if left := scalar[int](w, `SELECT count(*) FROM outbox`); restored.Held != waiting || left != 0 ||
		waiting <= 2*window || restored.Next <= restored.Last {
		t.Errorf("%d messages waited at the moment: %d are held and %d left; the next id is %d after %d", waiting,
			restored.Held, left, restored.Next, restored.Last)
	}
	w.audited()

	// Only new messages are sent.
	w.gateway.start()
	w.lumitel.Faults(func(f *carriersim.Faults) { f.HoldReceipts = false })
	w.bound()
	fresh := w.becomes(shop.sends(w.subscriber(999_999), "Amakuru mashasha").ID, "sent")
	if fresh.MessageID < restored.Next {
		t.Errorf("the next message has id %d, want %d or more", fresh.MessageID, restored.Next)
	}
	w.shrinks("without a receipt", settledWithin,
		func() int {
			s := w.lumitel.Stats()
			return s.ReceiptsWaiting + max(int(s.Accepted)-int(s.Confirmed), 0)
		})
	if n := w.lumitel.Stats().Accepted; n != carried+1 {
		t.Errorf("%d messages went out by themselves", n-carried-1)
	}

	// Receipts, and nothing else, identify the messages that the carrier has.
	at := map[string]string{} // the carrier's texts, by number
	for _, m := range w.lumitel.Messages() {
		at["+"+m.Destination] = m.Text
	}
	numbers := map[string]bool{} // of restored messages
	for _, r := range records {
		numbers[r.Number] = true
	}
	var strays []struct {
		Number string `json:"number"`
	}
	w.orders(&strays, "", "unmatched", "--carrier", "lumitel", "--limit", "100000")
	named := map[string]bool{}
	for _, s := range strays {
		named["+"+strings.TrimPrefix(s.Number, "+")] = true
	}
	lost := 0
	for number := range at {
		if !numbers[number] && number != fresh.To {
			lost++
			if !named[number] {
				t.Errorf("the carrier has a message of after the moment for a number that no receipt names")
			}
		}
	}
	open := w.unanswered()
	delivered := 0
	for _, m := range open {
		_, has := at[m.To]
		if has != (m.Receipts > 0) || has && m.ReceiptState != "DELIVRD" {
			t.Errorf("message %s: the carrier has it: %v; %d receipts name it, the last %q", m.ID, has, m.Receipts,
				m.ReceiptState)
		}
		if has {
			delivered++
		}
	}
	settled := restored.Held - len(open)
	if echoes && (settled == 0 || delivered > 0) || !echoes && (settled > 0 || delivered == 0) || lost == 0 ||
		len(open) == delivered {
		t.Errorf("of %d held messages %d settled by themselves and %d are unanswered, of which the carrier has %d; %d "+
			"messages are lost", restored.Held, settled, len(open), delivered, lost)
	}
	// A message accepted after the moment is unknown: its customer may send it again with the same idempotency key.
	for i, o := range l.outcomes {
		if _, known := records[l.text(i)]; o.accepted && !known {
			if a := shop.calls(w.gateway, http.MethodGet, "/v1/sms/"+o.id, nil); a.status != http.StatusNotFound {
				t.Errorf("a lost message is answered %d", a.status)
			}
			break
		}
	}

	// The operator decides.
	var done decided
	if delivered > 0 {
		w.orders(&done, "", "unanswered", "settle", "--as", "sent", "--carrier", "lumitel", "--receipts", "some", "--reason",
			"receipts name them")
		if done != (decided{Messages: delivered}) {
			t.Errorf("%+v settled, want %d", done, delivered)
		}
	}
	w.orders(&done, "", "unanswered", "send", "--all", "--receipts", "none", "--reason", "the carrier does not have them")
	if done != (decided{Messages: len(open) - delivered}) {
		t.Errorf("%+v sent again, want %d", done, len(open)-delivered)
	}
	w.settles(settledWithin)
	if left := w.unanswered(); len(left) != 0 {
		t.Errorf("%d messages are still unanswered", len(left))
	}
	if s := w.lumitel.Stats(); s.Duplicates != 0 {
		t.Errorf("%d messages arrived twice", s.Duplicates)
	}
	got := map[string]bool{}
	for _, m := range w.lumitel.Messages() {
		got[m.Text] = true
	}
	for text, r := range records {
		if !got[text] {
			t.Errorf("LOST: message %s, which waited at the moment, never came to the carrier", r.ID)
		}
	}
	for _, r := range shop.records() {
		if r.Status != "sent" {
			t.Errorf("message %s is %s (%s)", r.ID, r.Status, r.Reason)
		}
	}
	w.eventually(settledWithin, "every message has webhooks with one webhook-id", func() bool {
		ids := map[int64]map[string]bool{}
		for _, call := range shop.webhooks() {
			if ids[call.Data.MessageID] == nil {
				ids[call.Data.MessageID] = map[string]bool{}
			}
			ids[call.Data.MessageID][call.header.Get("webhook-id")] = true
		}
		for _, r := range records {
			if len(ids[r.MessageID]) != 1 {
				return false
			}
		}
		return true
	})
	t.Logf("at the moment %d messages were in the database and %d of them waited; %d that were accepted later are lost, "+
		"%d of them carried; "+
		"of those that waited %d were settled by echoed references, %d named by receipts, %d sent again",
		len(records), restored.Held, int(l.accepted.Load())-(len(records)-campaignOf), lost, settled, delivered,
		len(open)-delivered)
}

// has counts the carrier's messages whose text begins with a word.
func (w *world) has(word string) (n int) {
	for _, m := range w.lumitel.Messages() {
		if strings.HasPrefix(m.Text, word) {
			n++
		}
	}
	return n
}

// unanswered lists the messages that await a decision.
func (w *world) unanswered() []unanswered {
	w.t.Helper()
	var list []unanswered
	w.orders(&list, "", "unanswered", "--limit", "100000")
	return list
}
