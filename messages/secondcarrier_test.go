package messages_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/messages/rerouting"
	"intumwa/messages/submission"
)

// TestGiveToSecond: GiveToSecond loads the submit records and the claim for submission.MayGoElsewhere, which
// decides, and writes the result.
func TestGiveToSecond(t *testing.T) {
	records := map[string]bool{
		// f: answered and UNDELIV, p: answered and pending, s: sent; in capitals: never answered; x: passed by a carrier
		// before
		"": true, "f": true, "xf": true, "p": false, "s": false, "F": false, "fP": false,
	}
	type hand struct {
		name  string
		row   string // of the outbox, claimed by 7 under epoch 1 at first
		epoch int    // of the claim that ends; 0: none
		may   bool
	}
	hands := []hand{
		{"unclaimed, it is off the outbox", `DELETE FROM outbox WHERE message_id = $1`, 0, true},
		{"unclaimed, it waits", `UPDATE outbox SET claimed_by = NULL WHERE message_id = $1`, 0, true},
		{"unclaimed, it waits for another carrier", `UPDATE outbox SET claimed_by = NULL, carrier = 'onatel'
			WHERE message_id = $1`, 0, false},
		{"the caller, whose attempt ends", `SELECT $1::bigint`, 1, true},
		{"the caller, whose attempt goes on", `SELECT $1::bigint`, 0, false},
		{"the caller, in another attempt", `UPDATE outbox SET epoch = 2 WHERE message_id = $1`, 1, false},
		{"another", `UPDATE outbox SET claimed_by = 8, epoch = 2 WHERE message_id = $1`, 0, false},
		{"another, and the caller's attempt ends", `UPDATE outbox SET claimed_by = 8, epoch = 2 WHERE message_id = $1`, 1,
			false},
		{"the caller's claim was freed", `UPDATE outbox SET claimed_by = NULL WHERE message_id = $1`, 1, false},
	}
	d := newHotStore(t)
	ids := d.pending(len(records) * len(hands) * 2)
	d.claim(7, ids...)
	next := ids
	for letters, mayByRecords := range records {
		for _, h := range hands {
			for _, before := range []bool{false, true} {
				id := next[0]
				next = next[1:]
				name := fmt.Sprintf("submit records %q; %s; sent on before: %v", letters, h.name, before)
				for i, letter := range letters {
					d.copied(id, i+1, letter)
				}
				d.exec(h.row, id)
				row := d.count(`SELECT coalesce((SELECT epoch * 100 + coalesce(claimed_by, 0) FROM outbox WHERE message_id = $1),
					-1)`, id)
				var sent []int64
				d.tx(func(ctx context.Context, tx pgx.Tx) (err error) {
					if before {
						if _, err := tx.Exec(ctx, `INSERT INTO carrier_moves (message_id, at, from_carrier, to_carrier, reason)
							VALUES ($1, now(), 'a', 'b', '')`, id); err != nil {
							return err
						}
					}
					sent, err = d.GiveToSecond(ctx, tx, rerouting.SecondCarrier{Dispatcher: 7, From: carrier,
						To: rerouting.To{Carrier: "leo"}, Within: time.Minute, Validity: time.Hour},
						[]rerouting.Failing{{MessageID: id, Reason: "UNDELIV 001", Epoch: h.epoch}})
					return err
				})
				if may := mayByRecords && h.may && !before; may != (len(sent) == 1) {
					t.Errorf("%s: sent on: %v", name, sent)
				} else if !may {
					if after := d.count(`SELECT coalesce((SELECT epoch * 100 + coalesce(claimed_by, 0) FROM outbox
						WHERE message_id = $1), -1)`, id); after != row {
						t.Errorf("%s: its row has changed", name)
					}
					continue
				}
				if n := d.count(`SELECT count(*) FROM outbox o JOIN messages m ON m.id = o.message_id AND m.carrier = 'leo'
					JOIN carrier_moves s USING (message_id)
					WHERE message_id = $1 AND o.carrier = 'leo' AND claimed_by IS NULL AND attempts = 0 AND pushed_at IS NULL
					AND to_carrier = 'leo'`, id); n != 1 {
					t.Errorf("%s: it does not wait for the second carrier", name)
				}
				if n := d.count(`SELECT count(*) FROM segments WHERE message_id = $1 AND mark IS DISTINCT FROM 1`, id); n != 0 {
					t.Errorf("%s: %d submit records count still", name, n)
				}
			}
		}
	}
}

// copied records a copy of the first segment, in the letters of TestGiveToSecond.
func (d *testStore) copied(id int64, n int, letter rune) {
	d.Helper()
	key, state, word, passed := fmt.Sprintf("%d-%d", id, n), 0, "", false
	switch letter {
	case 'f', 'F':
		state, word = 2, "UNDELIV"
	case 's', 'S':
		state, word = 1, "DELIVRD"
	case 'x':
		state, word, passed = 2, "EXPIRED", true
	}
	if letter < 'a' {
		key = fmt.Sprintf("?%d", n)
	}
	d.exec(`INSERT INTO segments (message_id, segment, total, carrier, link, key, submitted_at, state, receipt, receipt_at,
		mark)
		VALUES ($1, 1, 1, $2, 'lumitel-1', $3, now(), nullif($4, 0)::smallint, nullif($5, ''), CASE WHEN $4 > 0
		THEN now() END, CASE WHEN $6 THEN 1 END)`,
		id, carrier, key, state, word, passed)
}

// TestReroutedUnanswered: a rerouted message that its first carrier may have gets no second carrier, and cannot be
// cancelled. It does not move to another carrier when its own is not configured any more, because its policy is
// unknown.
func TestReroutedUnanswered(t *testing.T) {
	d := newHotStore(t)
	ids := d.pending(2)
	d.exec(`UPDATE outbox SET attempts = 1 WHERE message_id = $1`, ids[0])
	d.copied(ids[0], 1, 'P')
	if stranded, err := d.Stranded(t.Context(), ids); err != nil || len(stranded) != 1 || stranded[0].ID != ids[1] {
		t.Errorf("to a successor: %+v, %v", stranded, err)
	}
	if n, err := d.Readdress(t.Context(), ids[:1], carrier, rerouting.To{Carrier: "leo"}); n != 0 || err != nil {
		t.Errorf("%d readdressed, %v", n, err)
	}
	if n, _, err := d.Reroute(t.Context(), carrier, rerouting.To{Carrier: "leo"}, 0, 0, 10, submission.Resend); n != 2 ||
		err != nil {
		t.Fatalf("%d handed over, %v", n, err)
	}
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		finals, err := d.Cancelled(ctx, tx, ids[:1])
		if len(finals) != 0 {
			t.Error("it is cancelled, and its first carrier may have it")
		}
		return err
	})
	claimed, err := d.Claim(t.Context(), 7, "leo", ids, false)
	if err != nil || len(claimed) != 2 {
		t.Fatalf("%d claimed, %v", len(claimed), err)
	}
	var list []rerouting.Failing
	for _, c := range claimed {
		list = append(list, rerouting.Failing{MessageID: c.ID, Reason: "ESME_RINVDSTADR", Epoch: c.Epoch})
	}
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		sent, err := d.GiveToSecond(ctx, tx, rerouting.SecondCarrier{Dispatcher: 7, From: "leo",
			To: rerouting.To{Carrier: "onatel"}, Validity: time.Hour}, list)
		same(t, "sent on", sent, ids[1:])
		return err
	})
}
