package dispatcher_test

import (
	"fmt"
	"testing"
	"time"

	"intumwa/tools/carriersim"
)

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
