package messages_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/messages"
	"intumwa/messages/retention"
	"intumwa/sms"
)

// rule sets how long a company's texts are kept, and makes the rule old enough for all transactions to have seen it.
func (d *testStore) rule(company sms.CompanyID, keep *time.Duration) {
	d.Helper()
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		_, err := retention.SetBodyRule(ctx, tx, company, keep)
		return err
	})
	d.exec(`UPDATE body_rules SET changed_at = now() - interval '1 hour' WHERE company_id = $1`, int64(company))
}

func keep(d time.Duration) *time.Duration { return &d }

// texts returns the ids of messages with a text.
func (d *testStore) texts() []int64 {
	d.Helper()
	return column[int64](d, `SELECT id FROM messages WHERE body <> '' ORDER BY id`)
}

// ruled runs the walks of companies' rules to their end; configured is the configured time.
func (d *testStore) ruled(configured time.Duration) (purged int64) {
	d.Helper()
	for {
		n, more, err := d.PurgeRuled(d.Context(), configured)
		if err != nil {
			d.Fatal(err)
		}
		if purged += n; !more {
			return purged
		}
	}
}

func (d *testStore) ruledBehind(what string, want time.Duration) {
	d.Helper()
	behind, err := d.RuledBehind(d.Context(), 0)
	if err != nil || behind < want || behind > want+10*time.Minute {
		d.Errorf("%s: behind by %v, %v; want %v", what, behind, err, want)
	}
}

// TestBodiesUntilFinal: the transaction that makes a message final removes its text, for that company only; a message
// in the outbox keeps it, because it may be sent again.
func TestBodiesUntilFinal(t *testing.T) {
	d := newHotStore(t)
	d.rule(1, keep(retention.BodiesUntilFinal))
	mine := d.pending(4)
	others := d.pending(2, func(m *messages.Message) { m.CompanyID = 2 })
	d.over(mine[0], others[0])
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		_, err := d.Finish(ctx, tx, []messages.Final{
			{MessageID: mine[1], Status: sms.Failed, At: time.Now(), Reason: "UNDELIV"}}, messages.Rows{})
		return err
	})
	same(t, "with a text", d.texts(), []int64{mine[2], mine[3], others[0], others[1]})

	// The next one's receipt comes before its answer: its dispatcher may die.
	claimed := d.claim(1, mine[2])
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		_, err := d.Finish(ctx, tx, []messages.Final{{MessageID: mine[2], Status: sms.Sent, At: time.Now()}}, messages.Rows{})
		return err
	})
	if n := d.ruled(0); n != 0 {
		t.Errorf("%d texts left while a dispatcher had the message", n)
	}
	d.exec(`UPDATE outbox SET claimed_by = NULL`)
	if again := d.claim(2, mine[2]); len(again) != 1 || again[0].Body != claimed[0].Body || again[0].Body == "" {
		t.Errorf("carried again: %+v", again)
	}
	d.exec(`DELETE FROM outbox WHERE message_id = $1`, mine[2])
	if n := d.ruled(0); n != 1 {
		t.Errorf("%d texts left then", n)
	}
	same(t, "with a text", d.texts(), []int64{mine[3], others[0], others[1]})
	d.over(mine[3])
	same(t, "with a text", d.texts(), others)
	if n := d.count(`SELECT count(*) FROM unpurged`); n != 0 {
		t.Errorf("%d are to be looked at again", n)
	}

	// Sandbox messages and cancelled ones lose their texts too.
	cancelled := d.pending(1)
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		waiting, _, err := d.Waiting(ctx, messages.Queued{Company: 1}, 0)
		if err != nil {
			return err
		}
		finals, err := d.Cancelled(ctx, tx, waiting)
		if err != nil {
			return err
		}
		_, err = d.Finish(ctx, tx, finals, messages.Rows{})
		return err
	})
	if slices.Contains(d.texts(), cancelled[0]) {
		t.Error("the text of a message that was cancelled is there")
	}
}

// TestBodyRules: a rule applies to old messages too, to its company only, may be longer or shorter, and can be changed.
func TestBodyRules(t *testing.T) {
	d := newHotStore(t)
	const day = 24 * time.Hour
	list := make([]*messages.Message, 0, 9)
	for range 3 {
		for company := int64(1); company <= 3; company++ {
			list = append(list, d.compose(func(m *messages.Message) { m.CompanyID = company }))
		}
	}
	ids := d.insert(list...)
	old, pending, young := ids[0:3], ids[3:6], ids[6:9] // of companies 1, 2, 3
	d.over(slices.Concat(old, young)...)
	d.aged(100*day, slices.Concat(old, pending)...)
	d.aged(10*day, young...)
	d.rule(2, keep(200*day)) // longer than the configured 90
	d.rule(3, keep(5*day))   // shorter
	if n := d.purge(retention.PurgeBodies); n != 1 {
		t.Errorf("as configured: %d", n)
	}
	d.ruledBehind("before", 95*day)
	if n := d.ruled(life); n != 2 {
		t.Errorf("companies' own: %d", n)
	}
	d.ruledBehind("after", 0)
	same(t, "with a text", d.texts(), []int64{old[1], pending[0], pending[1], pending[2], young[0], young[1]})

	d.over(pending[2])
	d.ruledBehind("the pending one is final now", 0)
	d.exec(`UPDATE messages SET sent_at = now() - interval '2 days' WHERE id = $1`, pending[2])
	d.ruledBehind("since two days", 2*day)
	if n := d.ruled(life); n != 1 {
		t.Errorf("once it was final: %d", n)
	}

	d.rule(2, nil) // as configured again
	if n := d.ruled(0); n != 0 {
		t.Errorf("configured as forever: %d", n)
	}
	if n := d.ruled(life); n != 1 {
		t.Errorf("as configured again: %d", n)
	}
	d.exec(`DELETE FROM unpurged`) // only a new walk reaches the pending one again
	d.rule(2, keep(retention.BodiesUntilFinal))
	if n := d.ruled(life); n != 1 { // the pending one keeps its text
		t.Errorf("until final: %d", n)
	}
	d.rule(2, keep(30*day)) // messages that the walk skipped as pending are checked again
	d.ruled(life)
	d.over(pending[1])
	if n := d.ruled(life); n != 1 {
		t.Errorf("after a rule that left the pending ones to their verdict: %d", n)
	}
	d.rule(3, keep(200*day))
	same(t, "with a text", d.texts(), []int64{pending[0], young[0]})
	if got, err := d.BodyRule(t.Context(), 3); err != nil || got == nil || *got != 200*day {
		t.Errorf("rule of company 3: %v, %v", got, err)
	}
	for _, company := range []sms.CompanyID{1, 9} {
		if got, err := d.BodyRule(t.Context(), company); err != nil || got != nil {
			t.Errorf("rule of company %d: %v, %v", company, got, err)
		}
	}
	d.over(pending[0])
	d.rule(1, nil) // it had none
	if n := d.count(`SELECT count(*) FROM body_rules`); n != 2 {
		t.Errorf("%d rules", n)
	}
}

// TestBodyRulesBehindManyPending: many pending messages of one company do not delay the removal of another's texts.
func TestBodyRulesBehindManyPending(t *testing.T) {
	d := newHotStore(t)
	d.exec(`ALTER SEQUENCE messages_id_seq RESTART WITH 50000`)
	ids := d.insert(d.compose(func(m *messages.Message) { m.CompanyID = 1 }))
	d.aged(100*24*time.Hour, ids...)
	d.rule(1, keep(24*time.Hour))
	if n := d.ruled(life); n != 0 {
		t.Fatalf("%d while it is pending", n)
	}
	d.exec(`INSERT INTO unpurged (kind, message_id) SELECT 'company bodies', n FROM generate_series(1, 45000) n`)
	d.over(ids...)
	var purged int64
	for range 3 {
		purged += d.ruled(life)
	}
	if purged != 1 || len(d.texts()) != 0 {
		t.Errorf("%d are removed", purged)
	}
}
