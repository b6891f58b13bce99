package intake

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/otp"
	"intumwa/messages"
)

// TestCodeEndsWithItsLife: a one-time code that a second carrier takes is not sent after its life.
func TestCodeEndsWithItsLife(t *testing.T) {
	d := newDistrict(t, 1)
	if err := d.process(t).SendCode(t.Context(), d.principal.UserID, "+25779123456", "fr", otp.New(6), 10*time.Minute); err != nil {
		t.Fatal(err)
	}
	var id int64
	if err := d.pool.QueryRow(t.Context(), `DELETE FROM outbox RETURNING message_id`).Scan(&id); err != nil { // its carrier took it, and reports UNDELIV
		t.Fatal(err)
	}
	if err := pgx.BeginFunc(t.Context(), d.pool, func(tx pgx.Tx) error {
		taken, err := messages.New(d.pool).GiveToSecond(t.Context(), tx, messages.SecondCarrier{From: "leo", To: messages.To{Carrier: "onatel"}, Within: time.Minute, Validity: 24 * time.Hour},
			[]messages.Failing{{MessageID: id, Reason: "UNDELIV"}})
		if len(taken) != 1 {
			t.Error("no second carrier takes it")
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	var left time.Duration
	if err := d.pool.QueryRow(t.Context(), `SELECT expires_at - now() FROM outbox`).Scan(&left); err != nil || left > 10*time.Minute {
		t.Errorf("the second carrier may get it for %v, %v", left, err)
	}
}
