package webhooks

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// TestPurge: deliveries older than the retention are deleted with everything that belongs to them, and
// cannot be looked up or sent again.
func TestPurge(t *testing.T) {
	w := New(batchPool(t), Options{AllowPrivate: true, Retention: 24 * time.Hour})
	setEndpoint(t, w, 1, "http://127.0.0.1:1/")
	giveUp(t, w, 1, 1, purgeBatch+10)
	perform(t, w, `INSERT INTO webhook_delivered (company_id, id, at, phone_number) SELECT company_id, id + 1, at,
		phone_number FROM webhook_undelivered`)
	perform(t, w, `UPDATE webhook_deliveries SET at = now() - interval '25 hours' WHERE id / 8 <= $1`, purgeBatch+5)
	gone, most := int64(0), int64(0)
	for block, looks := int64(0), 0; ; looks++ {
		n, next, err := w.purge(t.Context(), block, 10)
		if err != nil {
			t.Fatal(err)
		}
		if looks == 3 { // the table doubles meanwhile
			perform(t, w, `INSERT INTO webhook_delivered (company_id, id, at, phone_number) SELECT 2, n, now(), '+25761234567'
				FROM generate_series(1, 2100) n`)
		}
		if gone, most, block = gone+n, max(most, n), next; n == 0 && next == 0 {
			break
		}
	}
	if gone != 2*(purgeBatch+5) || most > 2*purgeBatch {
		t.Errorf("%d deleted, %d at once", gone, most)
	}
	if err := errOf(w.Delivery(t.Context(), 1, idSpan)); err == nil {
		t.Error("what has gone is still there")
	}
	if err := errOf(w.Resend(t.Context(), 1, idSpan)); err == nil {
		t.Error("what has gone was sent again")
	}
	if page, _, err := w.Deliveries(t.Context(), 1, Filter{State: StateFailed}, 0, 100); err != nil || len(page) != 5 {
		t.Errorf("%d left, %v", len(page), err)
	}
}

// TestPurgeWaits: what is due again while a purge waits for it stays. With PostgreSQL from 15.15 on, that needs
// no condition.
func TestPurgeWaits(t *testing.T) {
	for name, try := range map[string]struct {
		due   string
		again func(w *Webhooks, tx pgx.Tx) error
	}{
		"resent": {`'infinity'`, func(w *Webhooks, tx pgx.Tx) error { return errOf(w.In(tx).Resend(t.Context(), 1, idSpan)) }},
		"recovered": {`'infinity'`, func(w *Webhooks, tx pgx.Tx) error {
			return errOf(w.In(tx).Recover(t.Context(), 1, time.Now().AddDate(0, 0, -7)))
		}},
		"tried": {`now() - interval '25 hours'`, func(_ *Webhooks, tx pgx.Tx) error {
			return errOf(tx.Exec(t.Context(), `UPDATE webhook_undelivered SET due = now() + interval '1 hour'`))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := New(batchPool(t), Options{AllowPrivate: true, Retention: 24 * time.Hour})
			setEndpoint(t, w, 1, "http://127.0.0.1:1/")
			giveUp(t, w, 1, 1, 1)
			perform(t, w, `UPDATE webhook_undelivered SET at = now() - interval '25 hours', due = `+try.due)
			var gone int64
			err := behind(t, w, func(tx pgx.Tx) error { return try.again(w, tx) }, func() (err error) {
				gone, _, err = w.purge(t.Context(), 0, 10)
				return err
			})
			if err != nil || gone != 0 {
				t.Errorf("%d deleted, %v", gone, err)
			}
			only(t, w, 1)
		})
	}
}

// TestPurgeReadsLittle: however many undelivered deliveries are kept, a purge reads none of them only
// to find that it is not old. Deliveries that wait for an inactive endpoint become old too.
func TestPurgeReadsLittle(t *testing.T) {
	w := New(batchPool(t), Options{AllowPrivate: true, Retention: 24 * time.Hour})
	setEndpoint(t, w, 1, "http://127.0.0.1:1/")
	perform(t, w, `INSERT INTO webhook_undelivered (company_id, id, at, due, given_up_at, phone_number)
		SELECT 1, n * 8, now(), CASE WHEN n % 2 = 0 THEN 'infinity' ELSE now() END, now(), '+25761234567'
			FROM generate_series(1, 50000) n`)
	perform(t, w, `INSERT INTO webhook_delivered (company_id, id, at, phone_number) SELECT 1, 1 + n * 8, now(),
		'+25761234567' FROM generate_series(1, 50000) n`)
	perform(t, w, `VACUUM ANALYZE webhook_undelivered, webhook_delivered`)
	const few = 20 // blocks; the table has over 1,000
	for _, statement := range purgeStatements {
		if n, plan := blocks(t, w.pool, statement, w.opts.Retention, purgeBatch); n > few {
			t.Errorf("%d blocks:\n%s", n, plan)
		}
	}
	if n, plan := blocks(t, w.pool, purgeDelivered, w.opts.Retention, purgeBatch, int64(400), int64(401)); n > few {
		t.Errorf("%d blocks:\n%s", n, plan)
	}
	perform(t, w, `UPDATE webhook_undelivered SET at = now() - interval '25 hours', due = now() - interval '25 hours'
		WHERE id = 8`)
	if gone, _, err := w.purge(t.Context(), -1, 10); err != nil || gone != 1 {
		t.Errorf("%d deleted, %v", gone, err)
	}
}
