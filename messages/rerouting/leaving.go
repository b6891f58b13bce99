package rerouting

import (
	"context"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/receipts"
	"intumwa/messages/submission"
)

// Leaving is a step of taking messages away from a retired carrier.
type Leaving struct {
	Seen   int              // rows that it looked at; as many as the limit: there may be more
	Handed map[string]int64 // messages, by the carriers that have them now
	Finals []messages.Final // messages that fail: finish them in the same transaction
}

// Takers are the carriers that take over from retired ones (Successors), by these; To{}: none does. Their Unless does
// not count.
type Takers map[string]To

// columns returns the takers as the arrays of taker.
func (t Takers) columns() []any {
	retired, names, required := []string{}, []string{}, []bool{} // not NULL
	for carrier, to := range t {
		retired, names, required = append(retired, carrier), append(names, to.Carrier), append(required, to.Registration)
	}
	return []any{retired, names, required}
}

// taker is an SQL value: the carrier that takes the message m from the one in a column; empty if that is retired and
// none takes it, because there is none or its sender does not work there; NULL if that is not retired. $3 to $5 are the
// takers.
func taker(column string) string {
	return `(SELECT CASE WHEN m.test OR m.company_id = 0 OR coalesce((SELECT r.works
			FROM sender_carriers r JOIN senders s ON s.id = r.sender_id
			WHERE s.company_id = m.company_id AND s.name = m.sender AND r.carrier = u.next), NOT u.required)
			THEN u.next ELSE '' END
		FROM unnest($3::text[], $4::text[], $5::boolean[]) u(carrier, next, required) WHERE u.carrier = ` + column + `)`
}

// stays is a condition on a row o of the outbox and where its message goes (u.next): a carrier may have it. What its
// own carrier may have does not keep it from going back there: that carrier's on_ambiguous decides, as it did when it
// left. What an operator has sent again stays only if there is no carrier to send it to.
var stays = `(u.next = '' AND ` + receipts.MayHave("o.message_id") + ` OR ` +
	receipts.KeepsAt("o.message_id", "o.carrier") + `
	OR u.next IS DISTINCT FROM o.original_carrier AND ` + receipts.Keeps("o.message_id") + `)`

// LeaveOutbox takes up to limit unclaimed messages of the outbox away from a retired carrier, single sends first. Each
// goes to the carrier's taker if its sender works there, or back to the carrier that it came from by failover.
// Otherwise it leaves the outbox and fails with submission.ReasonClosed. What the carrier may have stays with it until
// a receipt, its expiry or an operator decides (Unanswered).
//
// It locks the rows before it reads their submit records, so it sees the submit records of claims that ended in
// between.
func (s *Store) LeaveOutbox(ctx context.Context, tx pgx.Tx, from string, takers Takers, limit int) (Leaving, error) {
	return leave(ctx, tx, from, takers, `SELECT w.message_id, coalesce(`+taker("coalesce(w.original_carrier, w.carrier)")+
		`, w.original_carrier, '') FROM outbox w JOIN messages m ON m.id = w.message_id
		WHERE w.carrier = $1 AND w.claimed_by IS NULL AND w.due_at <> w.expires_at
		ORDER BY w.lane, w.message_id LIMIT $2
		FOR UPDATE OF w, m SKIP LOCKED -- both rows: a verdict takes them the other way round`, limit,
		`WITH parked AS (
			UPDATE outbox o SET due_at = o.expires_at, pushed_at = NULL FROM unnest($1::bigint[], $2::text[]) u(id, next)
				WHERE o.message_id = u.id AND `+stays+`
		)
		UPDATE outbox o SET carrier = u.next, original_carrier = NULL, pushed_at = NULL,
			due_at = `+dueThere+`
		FROM unnest($1::bigint[], $2::text[]) u(id, next)
		WHERE o.message_id = u.id AND u.next <> '' AND NOT `+stays+` RETURNING o.message_id, u.next`,
		`WITH `+messages.KeptRefusals+` DELETE FROM outbox o WHERE o.message_id = ANY($1) AND NOT `+
			receipts.MayHave("o.message_id")+` RETURNING o.message_id, now()`)
}

// LeaveScheduled is [Store.LeaveOutbox] for scheduled messages. One that is being released is in the outbox then.
func (s *Store) LeaveScheduled(ctx context.Context, tx pgx.Tx, from string, takers Takers, limit int) (Leaving, error) {
	return leave(ctx, tx, from, takers, `SELECT w.message_id, coalesce(`+taker("w.carrier")+
		`, '') FROM scheduled w JOIN messages m ON m.id = w.message_id
		WHERE w.carrier = $1 ORDER BY w.message_id LIMIT $2 FOR UPDATE OF w, m SKIP LOCKED`, limit,
		`UPDATE scheduled o SET carrier = u.next FROM unnest($1::bigint[], $2::text[]) u(id, next)
		WHERE o.message_id = u.id AND u.next <> '' RETURNING o.message_id, u.next`,
		`DELETE FROM scheduled WHERE message_id = ANY($1) RETURNING message_id, now()`)
}

// leave locks the rows of messages and of the table in which they wait (find: their ids, and the carriers that they go
// to), then moves those that have one, and takes those that have none. It does nothing once the carrier is open again,
// or others take over: its caller may have read the retirements long before. Until the transaction ends nobody opens a
// retired carrier (Reopen) or names another successor (Retire).
func leave(ctx context.Context, tx pgx.Tx, from string, takers Takers, find string, limit int, move, take string) (
	l Leaving, err error) {
	var all, none []int64
	var nexts []string
	var id int64
	var next string
	doing := "taking messages away from " + from
	list, err := postgres.All(ctx, tx, doing, pgx.RowToStructByPos[Retired], selectRetired+` FOR SHARE`)
	if err != nil {
		return l, err
	}
	same := func(to string, taker To) bool { return to == taker.Carrier }
	if _, retired := takers[from]; !retired || !maps.EqualFunc(Successors(list), takers, same) {
		return l, nil
	}
	args := append([]any{from, limit}, takers.columns()...)
	if err := postgres.Each(ctx, tx, doing, []any{&id, &next}, func() error {
		if all, nexts = append(all, id), append(nexts, next); next == "" {
			none = append(none, id)
		}
		return nil
	}, find, args...); err != nil || len(all) == 0 {
		return l, err
	}
	l.Seen, l.Handed = len(all), map[string]int64{}
	var moved []int64
	var carriers []string
	if err := postgres.Each(ctx, tx, doing, []any{&id, &next}, func() error {
		moved, carriers = append(moved, id), append(carriers, next)
		l.Handed[next]++
		return nil
	}, move, all, nexts); err != nil {
		return l, err
	}
	if len(moved) > 0 {
		if _, err := tx.Exec(ctx, `UPDATE messages m SET carrier = u.next FROM unnest($1::bigint[], $2::text[]) u(id, next)
			WHERE m.id = u.id`, moved, carriers); err != nil {
			return l, fmt.Errorf("%s: %w", doing, err)
		}
	}
	if len(none) > 0 {
		l.Finals, err = postgres.All(ctx, tx, doing, messages.FailedFor(submission.ReasonClosed), take, none)
	}
	return l, err
}
