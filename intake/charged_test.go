package intake

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/billing"
	"intumwa/internal/postgres"
	"intumwa/messages"
)

// TestChargedOnce: a transaction that is repeated after its commit is refused and charges nothing, because the ULID of
// its message or batch exists.
func TestChargedOnce(t *testing.T) {
	for _, batch := range []bool{false, true} {
		d := newDistrict(t, 100)
		m := &messages.Message{ULID: ulid.Make(), CompanyID: 1, UserID: 1, Number: "+25779123456", Sender: "ACME", Body: "x",
			Segments: 1, Carrier: "leo"}
		ref := m.ULID
		if batch {
			ref = ulid.Make()
			m.Batch = &messages.Batch{ULID: ref, CompanyID: 1, UserID: 1, Kind: "bulk", Sender: "ACME", Recipients: 1,
				Segments: 1}
		}
		send := func() error {
			return pgx.BeginFunc(t.Context(), d.pool, func(tx pgx.Tx) error {
				if _, err := billing.ChargeAll(t.Context(), tx, []billing.Debit{{CompanyID: 1, Amount: 1, Ref: ref}},
					time.Second); err != nil {
					return err
				}
				_, err := messages.New(d.pool).Insert(t.Context(), tx, []*messages.Message{m})
				return err
			})
		}
		if err := send(); err != nil {
			t.Fatal(err)
		}
		if err := send(); !postgres.Refused(err) {
			t.Errorf("batch %v: again: %v", batch, err)
		}
		d.checkLedger(t, 99, 1)
	}
}
