package dispatcher_test

import (
	"strings"
	"testing"
	"time"

	"intumwa/dispatcher/profile"
	"intumwa/dispatcher/setup"
	"intumwa/smpp"
	"intumwa/sms"
	"intumwa/tools/carriersim"
)

// TestHabitsOfReceipts: receipts in every known shape and order. The last two
// digits of the handset select the simulator's fate.
func TestHabitsOfReceipts(t *testing.T) {
	t.Parallel()
	habits := []struct {
		fate, habit, source string
		text                string // "": a short text
		ends, reason        string
		event               string // another receipt outcome that is counted
	}{
		{fate: "00", habit: "text of appendix B", source: "rule carriers 2.2", ends: "sent", event: "matched"},
		{fate: "01", habit: "UNDELIV, with the error code kept", source: "rule carriers 2.5", ends: "failed",
			reason: "UNDELIV 011"},
		{fate: "08", habit: "receipt before submit_sm_resp", source: "rule carriers 2.7", ends: "sent"},
		{fate: "11", habit: "the same receipt ten times", source: "rule carriers 2.8", ends: "sent", event: "duplicate"},
		{fate: "12", habit: "DELIVRD, then UNDELIV", source: "rule carriers 2.9", ends: "sent", event: "contradiction"},
		{fate: "13", habit: "ENROUTE first", source: "rule carriers 2.5", ends: "sent", event: "intermediate"},
		{fate: "14", habit: "EXPIRED", source: "rule carriers 2.5", ends: "failed", reason: "EXPIRED 027"},
		{fate: "15", habit: "REJECTD", source: "rule carriers 2.5", ends: "failed", reason: "REJECTD 069"},
		{fate: "16", habit: "ACCEPTD and nothing more", source: "rule choices 5.3", ends: "sent"},
		{fate: "18", habit: "TLVs only, short_message empty", source: "rule carriers 2.3", ends: "sent"},
		{fate: "19", habit: "text in message_payload", source: "rule carriers 2.4", ends: "sent"},
		{fate: "20", habit: "receipt in data_sm", source: "rule carriers 2.4", ends: "sent"},
		{fate: "21", habit: "id's letter case differs", source: "rule carriers 1.2", ends: "sent"},
		{fate: "26", habit: "handset forges a receipt, esm_class 0", source: "rule carriers 2.1", ends: "failed",
			reason: "UNDELIV 011"},
		{fate: "27", habit: "intermediate notification, 0x20", source: "rule carriers 2.6", ends: "sent",
			event: "intermediate"},
		{fate: "30", habit: "DELETED", source: "rule carriers 2.5", ends: "failed", reason: "DELETED 088"},
		{fate: "31", habit: "stat nobody has heard of first", source: "rule carriers 2.6", ends: "sent"},
		{fate: "32", habit: "UNDELIV, then DELIVRD", source: "rule carriers 2.9", ends: "failed", reason: "UNDELIV 011"},
		{fate: "33", habit: "12-digit dates, four-digit err, vendor fields and TLVs", source: "rule carriers 2.2",
			ends: "sent"},
		{fate: "34", habit: "stat before id, capitals, nothing else", source: "rule carriers 2.2", ends: "sent"},
		{fate: "35", habit: "TLVs against the text", source: "rule carriers 2.3", ends: "sent"},
		{fate: "50", habit: "UUID ids", source: "rule carriers 1.3", ends: "sent"},
		{fate: "51", habit: "64-character ids", source: "rule carriers 1.3", ends: "sent"},
		{fate: "53", habit: "zero-padded in the response only", source: "rule carriers 1.2", ends: "sent"},
		{fate: "61", habit: "a receipt for an id never given", source: "rule carriers 2.10", ends: "sent",
			event: "unmatched"},
		{fate: "62", habit: "esm_class 0x44 without a UDH", source: "rule carriers 2.4", ends: "sent"},
		{fate: "63", habit: "the handset answers", source: "rule carriers 7.6", ends: "sent"},
		{fate: "64", habit: "zero-padded in the receipt only", source: "rule carriers 1.2", ends: "sent"},
		{fate: "65", habit: "alert_notification in between", source: "rule carriers 7.3", ends: "sent"},
		{fate: "68", habit: "TLVs under esm_class 0", source: "rule carriers 2.1", ends: "sent"},
		{fate: "69", habit: "text under esm_class 0", source: "rule carriers 2.15", ends: "pending", event: "unmatched"},
		{fate: "70", habit: "long names in quotation marks", source: "rule carriers 2.5", ends: "sent"},
		{fate: "71", habit: "equals signs", source: "rule carriers 2.2", ends: "sent"},
		{fate: "72", habit: "digits without the setting", source: "rule carriers 2.5", ends: "pending"},
		{fate: "73", habit: "0x before the id", source: "rule carriers 1.2", ends: "sent"},
		{fate: "74", habit: "TLV lengths in little-endian", source: "rule carriers 2.3", ends: "sent"},
		{fate: "75", habit: "message_state 0 beside DELIVRD", source: "rule carriers 2.3", ends: "sent"},
		{fate: "76", habit: "another id in the TLV", source: "rule carriers 1.6", ends: "sent"},
		{fate: "77", habit: "FAILED", source: "rule carriers 2.5", ends: "failed", reason: "FAILED 011"},
		{fate: "78", habit: "STOP marked as a receipt", source: "rule carriers 2.1", ends: "sent"},
		{fate: "79", habit: "STOP with the UDH bit", source: "rule carriers 7.6", ends: "sent"},
		{fate: "80", habit: "STOP with a damaged tail", source: "rule carriers 7.7", ends: "sent"},
		{fate: "81", habit: "STOP from 079…", source: "rule carriers 7.9", ends: "sent"},
		{fate: "82", habit: "STOP in packed septets", source: "rule carriers 7.6", ends: "sent"},
		{fate: "83", habit: "ARRÊT in UTF-8", source: "rule carriers 7.6", ends: "sent"},
		{fate: "84", habit: "parts without the UDH bit", source: "rule carriers 7.6", ends: "sent"},
		{fate: "28", habit: "second segment undeliverable", source: "rule carriers 2.12", text: strings.Repeat("a", 200),
			ends: "failed", reason: "UNDELIV 011"},
		{fate: "00", habit: "a receipt a segment", source: "rule carriers 2.12", text: strings.Repeat("a", 400),
			ends: "sent"},
		{fate: "55", habit: "one segment's receipt missing: never sent early", source: "rule carriers 2.12",
			text: strings.Repeat("a", 200), ends: "pending"},
		{fate: "07", habit: "no receipt", source: "rule carriers 2.11", ends: "pending"},
		{fate: "17", habit: "UNKNOWN and nothing more", source: "rule choices 5.3, 5.6", ends: "pending"},
		{fate: "25", habit: "empty message_id", source: "rule carriers 1.5", ends: "pending"},
		{fate: "67", habit: "ENROUTE and nothing more", source: "rule choices 5.3, 5.6", ends: "pending"},
	}
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{ReceiptDelay: 5 * time.Millisecond})
	// The id format is set because many messages are on one link at once.
	w.start(mno.mno(func(c *setup.Carrier) { c.IDFormat = profile.IDSame }))
	ids, final := make([]int64, len(habits)), 0
	for i, h := range habits {
		if h.ends != "pending" {
			final++
		}
		ids[i] = w.send(note{to: w.number(h.fate), text: h.text})[0]
	}
	for i, h := range habits {
		t.Run(strings.ReplaceAll(h.habit, "/", " "), func(t *testing.T) {
			if h.ends != "pending" {
				w.await(h.ends, 10*time.Second, ids[i])
			}
			if status, reason := w.statusOf(ids[i]); status != h.ends || reason != h.reason {
				t.Errorf("%s (%s): the message is %s %q, want %s %q", h.habit, h.source, status, reason, h.ends, h.reason)
			}
			if h.event != "" { // receipts after the settling one may be settled later
				w.in(t).until("a receipt is counted as "+h.event, func() bool {
					return w.metric("intumwa_receipts_total", "carrier", "lumitel", "outcome", h.event) > 0
				})
			}
		})
	}
	w.until("receipts are acknowledged", func() bool { return mno.Stats().ReceiptsWaiting == 0 })
	w.settledAll()
	for i, h := range habits { // later receipts changed nothing
		if status, _ := w.statusOf(ids[i]); status != h.ends {
			t.Errorf("%s: %s in the end, want %s", h.habit, status, h.ends)
		}
	}
	if n := w.count(`SELECT count(*) FROM inbound`); n != 9 {
		// the replies of 63 and 78 to 84, of which the last has two parts
		t.Errorf("%d messages from handsets are kept, want 9", n)
	}
	w.until("it is counted", func() bool { return w.metric("intumwa_inbound_messages_total", "carrier", "lumitel") == 9 })
	w.until("those that are final are counted", func() bool {
		return w.metric("intumwa_messages_final_total", "carrier", "lumitel") == float64(final)
	})
	if st := mno.Stats(); st.Discarded > 0 || st.Redelivered > 0 {
		t.Errorf("%d receipts were refused, %d delivered again", st.Discarded, st.Redelivered)
	}
	w.clean(mno)
}

// TestHabitOfNoReceipts: a carrier without receipts, and one whose receipts
// come too late.
//
// Source: rule carriers 2.11; rule choices 5.2, 5.6.
func TestHabitOfNoReceipts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	silent := w.carrier(carriersim.Options{Name: "silent", NoReceipts: true})
	late := w.carrier(carriersim.Options{Name: "late", NoReceipts: true})
	w.startWith(setup.Options{Validity: time.Hour},
		named("silent", silent, func(c *setup.Carrier) { c.Confirm = setup.ConfirmBySubmit }),
		named("late", late, func(c *setup.Carrier) {
			c.ReceiptTimeout, c.OnReceiptTimeout = 100*time.Millisecond, sms.Sent
		}),
		named("later", late, func(c *setup.Carrier) { c.ReceiptTimeout = 100 * time.Millisecond }))
	long := strings.Repeat("a", 200)
	byAnswer := w.send(note{to: w.number("00"), carrier: "silent"},
		note{to: w.number("00"), text: long, carrier: "silent"})
	sent := w.send(note{to: w.number("00"), carrier: "late"})
	failed := w.send(note{to: w.number("00"), carrier: "later"})
	w.await("sent", 10*time.Second, byAnswer...)
	w.until("the carriers have all", func() bool { return w.count(`SELECT count(*) FROM outbox`) == 0 })
	w.exec(`UPDATE messages SET created_at = created_at - interval '2 hours'`)
	w.await("sent", 10*time.Second, sent...)
	w.await("failed", 10*time.Second, failed...)
	if _, reason := w.statusOf(failed[0]); reason != "no_receipt" {
		t.Errorf("it failed for %q, want no_receipt", reason)
	}
	for _, m := range silent.Submits() {
		if m.RegisteredDelivery != 1 {
			t.Errorf("registered_delivery is %d: it is 1 for every carrier (rule choices 4.2)", m.RegisteredDelivery)
		}
	}
	w.clean(silent, late)
}

// TestMessagesOfRemovedCarrier: messages of a carrier that no process
// configures any more go to the current carrier of their numbers. Messages of a
// carrier that another process serves, or may come back to serve, stay.
//
// Source: rule carriers 10.4.
func TestMessagesOfRemovedCarrier(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{})
	gone := w.send(note{to: w.number("00"), carrier: "gone"}, note{to: w.number("00"), carrier: "gone"})
	elsewhere := w.send(note{to: w.number("00"), carrier: "elsewhere"})
	nowhere := w.send(note{to: "+25779000000", carrier: "gone"})
	w.exec(`INSERT INTO links (name, carrier, updated_at) VALUES
		('elsewhere-1', 'elsewhere', now()), ('gone-1', 'gone', now() - interval '11 minutes')`)
	w.startWith(setup.Options{Route: func(n sms.Number) (string, bool) { return "lumitel", n != "+25779000000" }},
		mno.mno())
	w.await("sent", 10*time.Second, gone...)
	w.until("they are counted as handed over", func() bool {
		return w.metric("intumwa_messages_rerouted_total", "carrier", "gone") == 2
	})
	for _, id := range append(elsewhere, nowhere...) {
		if status, _ := w.statusOf(id); status != "pending" {
			t.Errorf("a message of another process' carrier, or for which there is no other, is %s", status)
		}
	}
	if n := w.count(`SELECT count(*) FROM outbox WHERE carrier = 'elsewhere'`); n != 1 {
		t.Error("the message for another process' carrier was moved")
	}
	w.clean(mno)
}

// TestHabitOfDatabaseAway: receipts that cannot be stored are refused with
// ESME_RMSGQFUL, or with the carrier's delivery_refusal, and delivered again.
//
// Source: rule carriers 2.14.
func TestHabitOfDatabaseAway(t *testing.T) {
	t.Parallel()
	for want, setting := range map[string]smpp.Status{"ESME_RMSGQFUL": 0, "ESME_RSYSERR": smpp.StatusSysErr} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			mno := w.carrier(carriersim.Options{RedeliverDelay: 200 * time.Millisecond,
				Faults: carriersim.Faults{HoldReceipts: true}})
			w.start(mno.mno(func(c *setup.Carrier) { c.DeliveryRefusal = setting }))
			ids := w.sendMany(20, "00")
			w.until("all are submitted", func() bool { return w.count(`SELECT count(*) FROM segments`) == len(ids) })
			w.exec(`ALTER TABLE segments RENAME TO away`)
			mno.Faults(func(f *carriersim.Faults) { f.HoldReceipts = false })
			w.until("receipts are refused", func() bool {
				return w.metric("intumwa_receipts_refused_total") > 0 &&
					w.metric("intumwa_smpp_pdus_total", "direction", "out", "command", "deliver_sm_resp", "status", want) > 0
			})
			w.exec(`ALTER TABLE away RENAME TO segments`)
			w.await("sent", 15*time.Second, ids...)
			if st := mno.Stats(); st.Redelivered == 0 {
				t.Error("no receipt was delivered again")
			}
			w.clean(mno)
		})
	}
}
