package intake

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts/people"
	"intumwa/accounts/testnumbers"
	"intumwa/messages/rerouting"
)

// TestCodeEndsWithItsLife: a one-time code that a second carrier takes is not sent after its life.
func TestCodeEndsWithItsLife(t *testing.T) {
	d := newDistrict(t, 1)
	user := people.User{ID: d.principal.UserID, Language: "fr"}
	in := d.process(t)
	const started = `SELECT format('%s codes, %s messages, number %s', (SELECT count(*) FROM test_number_codes),
		(SELECT count(*) FROM messages WHERE body LIKE 'Votre code%******%'), (SELECT test_number FROM users WHERE id = 1))`
	d.exec(t, `ALTER TABLE messages ADD CONSTRAINT none CHECK (id < 0)`)
	if err := in.VerifyNumber(t.Context(), user, nil, "", "+25779123456"); err == nil ||
		d.text(t, started) != "0 codes, 0 messages, number " {
		t.Errorf("a code without its message counts: %v, %s", err, d.text(t, started))
	}
	d.exec(t, `ALTER TABLE messages DROP CONSTRAINT none`)
	if err := in.VerifyNumber(t.Context(), user, nil, "", "+25779123456"); err != nil ||
		d.text(t, started) != "1 codes, 1 messages, number +25779123456" {
		t.Fatalf("%v, %s", err, d.text(t, started))
	}
	var soon *testnumbers.TooSoonError
	if err := in.VerifyNumber(t.Context(), user, nil, "", "+25779123456"); !errors.As(err, &soon) {
		t.Errorf("again: %v", err)
	}
	var id int64
	if err := d.pool.QueryRow(t.Context(), `DELETE FROM outbox RETURNING message_id`).Scan(&id); err != nil {
		// its carrier took it, and reports UNDELIV
		t.Fatal(err)
	}
	if err := pgx.BeginFunc(t.Context(), d.pool, func(tx pgx.Tx) error {
		taken, err := rerouting.New(d.pool).GiveToSecond(t.Context(), tx,
			rerouting.SecondCarrier{From: "leo", To: rerouting.To{Carrier: "onatel"}, Within: time.Minute,
				Validity: 24 * time.Hour},
			[]rerouting.Failing{{MessageID: id, Reason: "UNDELIV"}})
		if len(taken) != 1 {
			t.Error("no second carrier takes it")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	var left time.Duration
	if err := d.pool.QueryRow(t.Context(), `SELECT expires_at - now() FROM outbox`).Scan(&left); err != nil ||
		left > 10*time.Minute {
		t.Errorf("the second carrier may get it for %v, %v", left, err)
	}
}
