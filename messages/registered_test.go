package messages_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/messages"
	"intumwa/messages/rerouting"
	"intumwa/messages/submission"
)

// TestOnlyWhereTheSenderWorks: a message goes to another carrier, in each of the ways, only if its sender works there:
// as recorded for that carrier, or else as its configuration has it. Test messages and the gateway's own always may.
func TestOnlyWhereTheSenderWorks(t *testing.T) {
	d := newTestStore(t)
	works := map[string]func(required bool) bool{
		"": func(required bool) bool { return !required }, "requested": never, "sent": never, "refused": never,
		"approved": always, "not_needed": always,
	}
	ways := map[string]func(ctx context.Context, to rerouting.To, id int64) (int64, error){
		"failover": func(ctx context.Context, to rerouting.To, id int64) (int64, error) {
			n, _, err := d.Reroute(ctx, carrier, to, messages.LaneSingle, 0, 10, submission.Resend)
			return n, err
		},
		"return": func(ctx context.Context, to rerouting.To, id int64) (int64, error) {
			d.exec(`UPDATE outbox SET original_carrier = $2 WHERE message_id = $1`, id, to.Carrier)
			return d.Return(ctx, to, 10)
		},
		"carrier gone": func(ctx context.Context, to rerouting.To, id int64) (int64, error) {
			return d.Readdress(ctx, []int64{id}, carrier, to)
		},
		"second carrier": func(ctx context.Context, to rerouting.To, id int64) (n int64, err error) {
			d.tx(func(ctx context.Context, tx pgx.Tx) error {
				sent, err := d.GiveToSecond(ctx, tx, rerouting.SecondCarrier{From: carrier, To: to, Within: time.Minute,
					Validity: time.Hour}, []rerouting.Failing{{MessageID: id, Reason: "UNDELIV"}})
				n = int64(len(sent))
				return err
			})
			return n, nil
		},
	}
	kinds := map[string]func(*messages.Message){
		"live": func(*messages.Message) {}, "test": func(m *messages.Message) { m.Test = true },
		"own": func(m *messages.Message) { m.CompanyID = 0 }, "sender unknown": func(m *messages.Message) {
			m.Sender = "GONE"
		},
	}
	for state, ok := range works {
		d.exec(`DELETE FROM sender_carriers`)
		d.exec(`INSERT INTO sender_carriers (sender_id, company_id, carrier, state) SELECT id, company_id, 'onatel', CASE
			WHEN id = 1 THEN nullif($1, '') WHEN $1 = 'approved' THEN 'refused' ELSE 'approved' END
			FROM senders WHERE id > 1 OR $1 <> ''`, state) // other companies' say the contrary
		for _, required := range []bool{false, true} {
			for way, hand := range ways {
				for kind, change := range kinds {
					id := d.pending(1, change)[0]
					want := int64(1)
					if kind == "live" && !ok(required) || kind == "sender unknown" && required {
						want = 0
					}
					if n, err := hand(t.Context(), rerouting.To{Carrier: "onatel", Registration: required}, id); err != nil ||
						n != want {
						t.Errorf("%s, %s; recorded %q, required %v: %d handed over, %v; want %d", way, kind, state, required, n, err,
							want)
					}
					d.exec(`DELETE FROM outbox`)
				}
			}
		}
	}
}

func never(bool) bool  { return false }
func always(bool) bool { return true }
