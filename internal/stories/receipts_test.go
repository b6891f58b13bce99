package stories

import (
	"testing"
	"time"

	"intumwa/tools/carriersim"
)

// What carriers do with receipts, and what the customer is told: one thing,
// once, and the first that was final.
func TestReceipts(t *testing.T) {
	t.Parallel()
	w := play(t, scene{
		carriers:       []carrier{{sim: carriersim.Options{ReceiptLead: 100 * time.Millisecond, LateResponse: time.Second, LateReceipt: 3 * time.Second}}},
		brokenProtocol: true, // a carrier that answers nobody has it coming
	})
	shop := w.company("Isoko", 1000)
	long := string(make161())
	type story struct {
		name, status, text string
		fate               int
	}
	stories := []story{
		{"the receipt is ahead of its response", "sent", "", 8},
		{"… and so are those of two segments", "sent", long, 8},
		{"the receipt comes late", "sent", "", 9},
		{"the response comes late", "sent", "", 22},
		{"the same receipt ten times", "sent", "", 11},
		{"DELIVRD, then UNDELIV", "sent", "", 12},
		{"UNDELIV, then DELIVRD", "failed", "", 32},
		{"ENROUTE, then DELIVRD", "sent", "", 13},
		{"EXPIRED", "failed", "", 14},
		{"REJECTD", "failed", "", 15},
		{"ACCEPTD", "sent", "", 16},
		{"DELETED", "failed", "", 30},
		{"a receipt of TLVs", "sent", "", 18},
		{"a receipt in message_payload", "sent", "", 19},
		{"a receipt in data_sm", "sent", "", 20},
		{"TLVs against the text", "sent", "", 35},
		{"the id in another letter case", "sent", "", 21},
		{"the id without its zeros", "sent", "", 53},
		{"the id of 64 characters", "sent", "", 51},
		{"a handset that texts a receipt", "failed", "", 26},
		{"a notification before the receipt", "sent", "", 27},
		{"a stranger's receipt before the right one", "sent", "", 61},
		{"the response comes twice", "sent", "", 38},
		{"a stranger's response before the right one", "sent", "", 39},
		{"the second of two segments fails", "failed", long, 28},
		{"the second of two segments is refused", "failed", long, 29},
		{"throttled twice", "sent", "", 3},
		{"the carrier's queue is full once", "sent", "", 5},
	}
	ids := make([]string, len(stories))
	for i, s := range stories {
		text := s.text
		if text == "" {
			text = "Amahoro mwese"
		}
		ids[i] = shop.sends(w.fated(s.fate), text).ID
	}
	for i, s := range stories {
		m := w.becomes(ids[i], s.status)
		if call := shop.hears(m.MessageID, finalWithin); call.Event != "sms."+s.status {
			t.Errorf("%s: the customer was told %s, want sms.%s", s.name, call.Event, s.status)
		}
	}
	// No second verdict comes after all receipts are in.
	w.eventually(finalWithin, "the carrier has told everything", func() bool { return w.lumitel.Stats().ReceiptsWaiting == 0 })
	for i, s := range stories {
		m := w.becomes(ids[i], s.status)
		if n := len(shop.webhooksOf(m.MessageID)); n != 1 {
			t.Errorf("%s: the customer was told %d times", s.name, n)
		}
	}
}

// A carrier that writes its ids in hex in the response and in decimal in the
// receipt, and is configured so.
func TestHexIds(t *testing.T) {
	t.Parallel()
	w := play(t, scene{carriers: []carrier{
		{sim: carriersim.Options{IDs: carriersim.IDHexThenDecimal}, config: tree{"message_id_format": "hex_to_decimal"}},
		{sim: carriersim.Options{IDs: carriersim.IDDecimalThenHex}, config: tree{"message_id_format": "decimal_to_hex"}},
	}})
	shop := w.company("Isoko", 10)
	for _, c := range w.carriers {
		number := w.numberOf(c, 0)
		m := w.becomes(shop.sends(number, "Amahoro mwese").ID, "sent")
		if want := c.segmentsOf(number)[0].ID; len(m.Segments) != 1 || m.Segments[0].CarrierID != want {
			t.Errorf("%s: the segments are %+v, want the response's id %s", c.Name(), m.Segments, want)
		}
	}
}

// A carrier that gives no receipts: its submit_sm_resp is the confirmation.
func TestConfirmBySubmit(t *testing.T) {
	t.Parallel()
	w := play(t, scene{carriers: []carrier{{sim: carriersim.Options{NoReceipts: true}, config: tree{"confirm": "submit"}}}})
	shop := w.company("Isoko", 10)
	m := w.becomes(shop.sends(w.number(), "Amahoro mwese").ID, "sent")
	if call := shop.hears(m.MessageID, finalWithin); call.Event != "sms.sent" {
		t.Errorf("the customer was told %s", call.Event)
	}
	long := w.becomes(shop.sends(w.number(), string(make161())).ID, "sent")
	if len(long.Segments) != 2 {
		t.Errorf("two segments were confirmed as %+v", long.Segments)
	}
	refused := w.becomes(shop.sends(w.fated(2), "Amahoro mwese").ID, "failed")
	if call := shop.hears(refused.MessageID, finalWithin); call.Event != "sms.failed" {
		t.Errorf("the customer was told %s", call.Event)
	}
}

// A carrier that wants two binds: one takes messages, the other gives receipts.
func TestTransmitterReceiverPair(t *testing.T) {
	t.Parallel()
	w := play(t, scene{carriers: []carrier{{link: tree{"bind": "transmitter_receiver"}}}})
	shop := w.company("Isoko", 10)
	for range 3 {
		w.becomes(shop.sends(w.number(), "Amahoro mwese").ID, "sent")
	}
	w.becomes(shop.sends(w.fated(1), "Amahoro mwese").ID, "failed")
	if n := w.lumitel.Stats().Sessions; n != 2 {
		t.Errorf("the carrier has %d binds, want 2", n)
	}
}
