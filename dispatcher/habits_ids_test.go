package dispatcher_test

import (
	"fmt"
	"testing"
	"time"

	"intumwa/dispatcher"
	"intumwa/tools/carriersim"
)

// TestHabitsOfIDs: whatever the form of a carrier's ids in its receipts, and whatever their
// order, every message is settled.
func TestHabitsOfIDs(t *testing.T) {
	t.Parallel()
	habits := []struct {
		habit, source string
		ids           carriersim.IDFormat
		faults        carriersim.Faults
	}{
		{habit: "alike", source: "rule carriers 1.3", ids: carriersim.IDDecimal},
		{habit: "hex, then decimal", source: "rule carriers 1.1", ids: carriersim.IDHexThenDecimal},
		{habit: "decimal, then hex", source: "rule carriers 1.1", ids: carriersim.IDDecimalThenHex},
		{habit: "zero-padded, then not", source: "rule carriers 1.2", ids: carriersim.IDZeroPadded},
		{habit: "not, then zero-padded", source: "rule carriers 1.2", ids: carriersim.IDTrimmed},
		{habit: "upper, then lower case", source: "rule carriers 1.2", ids: carriersim.IDCase},
		{habit: "UUID", source: "rule carriers 1.3", ids: carriersim.IDUUID},
		{habit: "64 characters", source: "rule carriers 1.3", ids: carriersim.IDLong},
		{habit: "hex, then decimal, all receipts first", source: "rule carriers 1.1, 2.7", ids: carriersim.IDHexThenDecimal,
			faults: carriersim.Faults{ReceiptFirst: true}},
		{habit: "decimal, then hex, all receipts ten times", source: "rule carriers 1.1, 2.8", ids: carriersim.IDDecimalThenHex,
			faults: carriersim.Faults{ReceiptCopies: 10}},
	}
	w := newWorld(t)
	var carriers []dispatcher.Carrier
	sims := make([]*sim, len(habits))
	for i, h := range habits {
		sims[i] = w.carrier(carriersim.Options{Name: fmt.Sprint("sim", i), IDs: h.ids, Faults: h.faults, NoFates: true})
		carriers = append(carriers, named(fmt.Sprint("carrier", i), sims[i], func(c *dispatcher.Carrier) { c.Links[0].Window = 100 }))
	}
	w.start(carriers...)
	const n = 40
	ids := make([][]int64, len(habits))
	for i := range habits {
		notes := make([]note, n)
		for j := range notes {
			notes[j] = note{to: w.number("00"), carrier: fmt.Sprint("carrier", i)}
		}
		ids[i] = w.send(notes...)
	}
	for i, h := range habits {
		t.Run(h.habit, func(t *testing.T) {
			w := w.in(t)
			w.await("sent", 20*time.Second, ids[i]...)
			if n := w.count(`SELECT count(*) FROM receipts WHERE carrier = $1 AND message_id IS NULL`, fmt.Sprint("carrier", i)); n > 0 && h.faults.ReceiptCopies == 0 {
				t.Errorf("%s (%s): %d receipts are left in the inbox", h.habit, h.source, n)
			}
			w.clean(sims[i])
		})
	}
}

// TestHabitOfSmallHexIDs: a carrier that counts from 1, hexadecimal in the
// response and decimal in the receipt: one message's receipt has the digits of
// another's id. No receipt settles another handset's message.
//
// Source: rule carriers 1.4.
func TestHabitOfSmallHexIDs(t *testing.T) {
	t.Parallel()
	for _, first := range []bool{false, true} {
		t.Run(fmt.Sprintf("receipts first %v", first), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			mno := w.carrier(carriersim.Options{FirstID: 1, IDs: carriersim.IDHexThenDecimal, Faults: carriersim.Faults{ReceiptFirst: first}})
			w.start(mno.mno())
			// Odd handsets are delivered, even ones are not: a mix-up shows.
			const n = 120
			notes := make([]note, n)
			for i := range notes {
				notes[i] = note{to: w.number(fmt.Sprintf("%02d", i%2))}
			}
			ids := w.send(notes...)
			for i, id := range ids {
				want := []string{"sent", "failed"}[i%2]
				w.await(want, 20*time.Second, id)
			}
		})
	}
}

// TestHabitOfIDsReconfigured: an operator sets another form,
// and the link keeps its bind.
//
// Source: rule choices 7.6, 7.11.
func TestHabitOfIDsReconfigured(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{IDs: carriersim.IDDecimalThenHex, NoFates: true})
	conf := mno.mno(func(c *dispatcher.Carrier) { c.IDFormat = dispatcher.IDSame })
	w.start(conf)
	ids := w.sendMany(3, "00")
	w.until("the receipts wait", func() bool { return w.count(`SELECT count(*) FROM receipts`) == 3 })
	conf.IDFormat = dispatcher.IDDecimalToHex
	if err := w.d.Reload([]dispatcher.Carrier{conf}); err != nil {
		t.Fatal(err)
	}
	var more []int64
	w.until("the new form holds", func() bool { // for what is sent after it was taken over
		more = append(more, w.sendTo("00"))
		return w.count(`SELECT count(*) FROM messages WHERE id = ANY($1) AND status = 1`, more) > 0
	})
	if status, _ := w.statusOf(ids[0]); status != "pending" {
		t.Errorf("a receipt under a wrong configured form made the message %s", status)
	}
	if n := mno.Stats().Binds; n != 1 {
		t.Errorf("%d binds, want the first kept", n)
	}
}
