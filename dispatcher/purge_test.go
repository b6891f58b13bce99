package dispatcher

import (
	"testing"
	"time"
)

// TestPurgeTask: without a retention everything stays. With one, old final messages are deleted, their texts earlier,
// and the delay is measured. Each purge takes only part of a round, however much there is.
func TestPurgeTask(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.exec(`
		INSERT INTO messages (ulid, company_id, user_id, phone_number, sender, body, encoding, segments, test, created_at,
			carrier, status)
		SELECT gen_random_uuid(), 0, 1, '+25761' || lpad(n::text, 6, '0'), 'DEMO', 'x', 0, 1, false,
			now() - CASE WHEN n <= 500 THEN interval '100 hours' WHEN n <= 510 THEN interval '60 hours'
			ELSE interval '1 hour' END, 'lumitel', 1
		FROM generate_series(1, 520) n`)
	b.d.housekeeping.GaugePurges(t.Context())
	if err := b.tasks(); err != nil {
		t.Fatal(err)
	}
	if n := b.count(`SELECT count(*) FROM messages WHERE body <> ''`); n != 520 || b.metric("intumwa_purged_total") != 0 ||
		b.metric("intumwa_purge_behind_seconds") != 0 {
		t.Errorf("%d are there, with a retention without limit", n)
	}

	b.d.core.Opts.MessageRetention, b.d.core.Opts.BodyRetention = 96*time.Hour, 48*time.Hour
	b.d.housekeeping.GaugePurges(t.Context())
	if behind, want := b.metric("intumwa_purge_behind_seconds"), 56*time.Hour.Seconds(); behind < want || behind > want+
		600 {
		t.Errorf("behind by %v s in all, want %v", behind, want)
	}
	for deadline := time.Now().Add(time.Minute); b.metric(
		"intumwa_purge_behind_seconds") > 0; b.d.housekeeping.GaugePurges(t.Context()) {
		// PostgreSQL may cut off a starved round; the next one goes on.
		if err := b.tasks(); time.Now().After(deadline) {
			t.Fatalf("it does not come to an end: %v", err)
		}
	}
	if n, texts := b.count(`SELECT count(*) FROM messages`),
		b.count(`SELECT count(*) FROM messages WHERE body <> ''`); n != 20 || texts != 10 {
		t.Errorf("%d messages, %d with a text", n, texts)
	}
	if n := b.metric("intumwa_purged_total"); n < 510 || n > 1010 { // bodies of deleted messages are not counted
		t.Errorf("%v left", n)
	}
}

// TestPurgeOfBinds: what waits for customers' binds is deleted after its time also while no process has the role smpp.
func TestPurgeOfBinds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.exec(`INSERT INTO smpp_deliveries (account, phone_number, address, at, body, created_at)
		SELECT 1, '+25761000001', '8080', now(), 'Yego', now() - make_interval(hours => n) FROM unnest('{71, 73}'::int[]) n`)
	if err := b.tasks(); err != nil {
		t.Fatal(err)
	}
	if n := b.count(`SELECT count(*) FROM smpp_deliveries`); n != 1 {
		t.Errorf("%d deliveries wait", n)
	}
}
