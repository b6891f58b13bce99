package intake

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/accounts"
	"intumwa/accounts/companies"
	apikeys "intumwa/accounts/keys"
	"intumwa/accounts/senders"
	"intumwa/accounts/testnumbers"
	"intumwa/billing"
	"intumwa/internal/queue"
	"intumwa/internal/testenv"
	"intumwa/internal/throttle"
	"intumwa/messages"
	"intumwa/messages/statistics"
	"intumwa/sms"
	"intumwa/verifications"
	"intumwa/webhooks"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// district is a database with one customer, for any number of processes.
type district struct {
	pool        *pgxpool.Pool
	keys        *apikeys.Store
	holders     *apikeys.Holders
	companies   *companies.Store
	senders     *senders.Store
	testNumbers *testnumbers.Store
	principal   *accounts.Principal
}

func newDistrict(t testing.TB, credits int64) *district {
	t.Helper()
	return newDistrictOn(t, testenv.Pool(t), credits)
}

func newDistrictOn(t testing.TB, pool *pgxpool.Pool, credits int64) *district {
	t.Helper()
	ctx := context.Background()
	d := &district{pool: pool}
	d.holders, d.testNumbers = apikeys.NewHolders(d.pool, apikeys.Options{}),
		testnumbers.New(d.pool, testnumbers.Options{})
	d.keys, d.companies, d.senders = apikeys.New(d.pool, nil, d.holders), companies.New(d.pool, d.holders.Forget),
		senders.New(d.pool, "TEST", d.holders.Forget)
	if _,
		err := d.pool.Exec(
		ctx, `INSERT INTO users (email, name, password_hash) VALUES ('a@example.com', 'a', 'none')`); err != nil {
		t.Fatal(err)
	}
	_, token, err := d.keys.CreateToken(ctx, "a@example.com", "test", accounts.TokenLimits{})
	if err != nil {
		t.Fatal(err)
	}
	err = pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		c, err := d.companies.CreateCompany(ctx, tx, companies.NewCompany{OwnerEmail: "a@example.com", Name: "a",
			Approved: true, Verified: true})
		if err != nil {
			return err
		}
		if err := billing.Open(ctx, tx, c.ID); err != nil {
			return err
		}
		_, err = billing.Grant(ctx, tx, c.ID, credits, "test")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.senders.CreateSender(ctx, 1, "ACME", "", true); err != nil {
		t.Fatal(err)
	}
	if d.principal, err = d.holders.Authenticate(ctx, token); err != nil {
		t.Fatal(err)
	}
	return d
}

// process returns an Intake that runs until the test ends.
func (d *district) process(t testing.TB) *Intake {
	t.Helper()
	rdb, prefix := testenv.Redis(t)
	routes, err := sms.NewRoutes([]sms.Route{{Carrier: "leo", Default: true}})
	if err != nil {
		t.Fatal(err)
	}
	in := New(d.pool, d.holders, d.testNumbers, messages.New(d.pool), queue.New(rdb, queue.Options{Prefix: prefix}),
		routes, Options{TestSender: "TEST", TestQuota: 5,
			Verifications: verifications.New(d.pool, []byte("key")), Events: webhooks.New(d.pool, webhooks.Options{}).Enqueue,
			VerificationRate: throttle.New(rdb, throttle.Options{Prefix: prefix + ":verifications", Limit: 1000,
				Window: time.Hour, Timeout: 5 * time.Second})})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = in.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return in
}

func (d *district) request(text string, key *Key) Single {
	return Single{Number: "+25779123456", Sender: "ACME", Message: text, Key: key}
}

// checkLedger compares the credits left and the messages recorded.
func (d *district) checkLedger(t testing.TB, credits, count int64) {
	t.Helper()
	var gotCredits, ledger, gotCount, segments, debits int64
	err := d.pool.QueryRow(context.Background(), `SELECT (SELECT credits FROM balances), (SELECT sum(amount) FROM ledger),
		(SELECT count(*) FROM messages), (SELECT coalesce(sum(segments), 0) FROM messages),
		(SELECT coalesce(-sum(amount), 0) FROM ledger WHERE kind = 'send')`).Scan(&gotCredits, &ledger, &gotCount, &segments,
		&debits)
	if err != nil {
		t.Fatal(err)
	}
	if gotCredits != credits || ledger != credits || gotCount != count || segments != debits {
		t.Errorf("%d credits (ledger %d), %d messages of %d segments for %d; want %d credits and %d messages",
			gotCredits, ledger, gotCount, segments, debits, credits, count)
	}
	audit, err := statistics.New(d.pool).Audit(context.Background(), time.Hour)
	if err != nil || audit.Unpaid != 0 || audit.Unrecorded != 0 {
		t.Errorf("audit: %+v, %v", audit, err)
	}
}
