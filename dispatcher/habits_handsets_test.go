package dispatcher_test

import (
	"fmt"
	"testing"
	"time"

	"intumwa/dispatcher/profile"
	"intumwa/dispatcher/setup"
	"intumwa/inbound/handsets"
	"intumwa/smpp"
	"intumwa/tools/carriersim"
)

// TestHabitsThatNeedASetting: a carrier whose receipts are texts under esm_class 0 with numbers for states. A text
// counts only with the id and the handset of a segment.
//
// Source: rule carriers 2.5, 2.15.
func TestHabitsThatNeedASetting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{Faults: carriersim.Faults{UnmarkedReceipts: true, DigitReceipts: true}})
	w.start(mno.mno(func(c *setup.Carrier) {
		c.UnmarkedReceipts, c.Reading = true, smpp.Reading{StateDigits: true}
	}))
	sent, failed, silent := w.sendTo("00"), w.sendTo("01"), w.sendTo("07")
	w.await("sent", 10*time.Second, sent)
	w.await("failed", 10*time.Second, failed)
	w.until("the answer to the third is stored",
		func() bool { return w.count(`SELECT count(*) FROM segments WHERE message_id = $1`, silent) == 1 })
	id := w.text(`SELECT coalesce(carrier_id, key) FROM segments WHERE message_id = $1`, silent)
	forged := fmt.Sprintf("id:%s sub:001 dlvrd:001 submit date:2603011000 done date:2603011001 stat:DELIVRD err:000 text:",
		id)
	if err := mno.SendMO(carriersim.MO{From: "25761999907", To: "ACME", Text: forged}); err != nil {
		t.Fatal(err)
	}
	w.until("the forgery is kept as unmatched", func() bool {
		return w.count(`SELECT count(*) FROM receipts WHERE message_id IS NULL`) == 1
	})
	if status, _ := w.statusOf(silent); status != "pending" {
		t.Errorf("another handset's text settled it: %s", status)
	}
	if n := w.count(`SELECT count(*) FROM inbound`); n != 0 {
		t.Errorf("%d receipts are kept as texts from handsets", n)
	}
	w.clean(mno)
}

// TestHabitsOfTexts: packed septets and parts without the UDH bit are read with the carrier's key, UTF-8 without one.
//
// Source: rule carriers 7.6.
func TestHabitsOfTexts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	packed, plain, hidden := w.carrier(carriersim.Options{Name: "packed"}), w.carrier(carriersim.Options{Name: "plain"}),
		w.carrier(carriersim.Options{Name: "hidden"})
	w.start(
		named("packed", packed, func(c *setup.Carrier) {
			c.Inbound, c.Reading = profile.InboundPacked,
				smpp.Reading{Packed: true}
		}),
		named("plain", plain),
		named("hidden", hidden, func(c *setup.Carrier) { c.Reading = smpp.Reading{HiddenUDH: true} }))
	for carrier, c := range map[string]struct{ fate, want string }{"packed": {"82", "STOP"}, "plain": {"83", "ARRÊT"},
		"hidden": {"84", "STOP ACME"}} {
		w.send(note{to: w.number(c.fate), carrier: carrier})
		w.until(c.want+" is kept", func() bool {
			return w.text(`SELECT coalesce(string_agg(body, '' ORDER BY part_number), '') FROM inbound WHERE carrier = $1`,
				carrier) == c.want
		})
	}
	w.clean(packed, plain, hidden)
}

// TestHabitOfTheSameTextTwice: a text that comes again after our answer is a new one; its handset is known in any form.
//
// Source: rule carriers 7.8, 7.9.
func TestHabitOfTheSameTextTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{})
	w.start(mno.mno())
	w.until("it is bound", func() bool { return mno.Stats().Sessions > 0 })
	for n, from := range []string{"25761000001", "061000001"} {
		if err := mno.SendMO(carriersim.MO{From: from, To: "8080", Text: "1"}); err != nil {
			t.Fatal(err)
		}
		w.until("it is answered", func() bool {
			return w.count(`SELECT count(*) FROM inbound WHERE answered_at >= received_at AND bound_at < received_at`) == n+1
		})
	}
	store := handsets.New(w.pool)
	kept, err := store.Fresh(t.Context(), 10, []string{})
	if err != nil || len(kept) != 2 || kept[0].Source != "25761000001" || kept[1].Source != kept[0].Source {
		t.Fatalf("%+v, %v", kept, err)
	}
	if err := store.Mark(t.Context(), handsets.Unrouted, 0, kept[0].ID); err != nil {
		t.Fatal(err)
	}
	if got, err := store.Repeats(t.Context(), &kept[1], time.Hour); err != nil || got != handsets.Original {
		t.Errorf("the second text is a repetition: %v, %v", got, err)
	}
	w.clean(mno)
}
