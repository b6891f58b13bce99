package campaigns_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/accounts/keys"
	"intumwa/accounts/people"
	"intumwa/accounts/testnumbers"
	"intumwa/billing"
	"intumwa/campaigns"
	"intumwa/contacts"
	"intumwa/intake"
	"intumwa/internal/queue"
	"intumwa/internal/testenv"
	"intumwa/messages"
	"intumwa/sms"
	"intumwa/texts"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// TestGroups: a campaign goes to the members of groups who are not in others, each once, as they are when it begins:
// who opted out, left, or cannot be reached is left out and counted.
func TestGroups(t *testing.T) {
	pool := testenv.Pool(t)
	rdb, prefix := testenv.Redis(t)
	ctx := t.Context()
	exec := func(statement string, args ...any) {
		t.Helper()
		if _, err := pool.Exec(ctx, statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	count := func(query string, args ...any) (n int) {
		t.Helper()
		if err := pool.QueryRow(ctx, query, args...).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	testenv.Companies(t, pool, 1)
	exec(`UPDATE companies SET approved = true, verified = true, opt_outs = true`)
	exec(`UPDATE users SET company_id = 1, role = 'owner'`)
	ledger := billing.New(pool)
	if err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := billing.Open(ctx, tx, 1); err != nil {
			return err
		}
		_, err := billing.Grant(ctx, tx, 1, 5000, "invoice")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	holders, numbers := keys.NewHolders(pool, keys.Options{}), testnumbers.New(pool, testnumbers.Options{})
	routes, err := sms.NewRoutes([]sms.Route{{Carrier: "leo", Prefixes: []string{"7"}}})
	if err != nil {
		t.Fatal(err)
	}
	in := intake.New(pool, holders, numbers, messages.New(pool), queue.New(rdb, queue.Options{Prefix: prefix}), routes,
		intake.Options{})
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- in.Run(running) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	c := campaigns.New(campaigns.Deps{Pool: pool, Holders: holders, People: people.New(pool), Ledger: ledger, Intake: in,
		Plan: sms.NewPlan("6", "7"), Log: slog.New(slog.DiscardHandler)})
	all, err := texts.Load()
	if err != nil {
		t.Fatal(err)
	}
	lang, _ := all.ByTag("en")
	store := contacts.New(pool)
	group := func(name string) int64 {
		g, err := store.CreateGroup(ctx, 1, name)
		if err != nil {
			t.Fatal(err)
		}
		return g.ID
	}
	class3, class5, class4, nobody := group("Classe 3"), group("Classe 5"), group("Classe 4"), group("Personne")
	var entries []contacts.Entry
	for i := range 1200 { // more than one part
		entries = append(entries, contacts.Entry{Number: sms.Number(fmt.Sprintf("+257790%05d", i)),
			Name: new(fmt.Sprint("N", i)), Fields: map[string]*string{"solde": new("100")}, Groups: []int64{class3, class5}})
	}
	entries[1].Groups = []int64{class3, class4} // left out: in class 4 too
	entries[2].Fields = nil                     // a gap in the text
	entries[3].Number = "+25761000001"          // no carrier
	for part := range slices.Chunk(entries, contacts.MaxAtOnce) {
		if _, err := store.Put(ctx, 1, part); err != nil {
			t.Fatal(err)
		}
	}
	exec(`INSERT INTO opt_outs (company_id, phone_number, sender, source) VALUES (1, '+25779000004', '', 'handset')`)
	user := int64(count(`SELECT owner_id FROM companies`))
	p, err := holders.PrincipalOf(ctx, user)
	if err != nil {
		t.Fatal(err)
	}
	keep := func(template string, audience contacts.Audience) (made campaigns.Campaign, wrong string) {
		t.Helper()
		made = campaigns.Campaign{ID: ulid.Make(), Company: 1, Name: "x", Sender: "DEMO", Template: template,
			Audience: &audience}
		problems, err := c.KeepGroups(ctx, lang, p.Company, &made)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range problems {
			wrong += problem.Text
		}
		return made, wrong
	}
	for want, test := range map[string]struct {
		template string
		groups   []int64
	}{
		"The text uses “classe”, but no contact has this field.": {"{{classe}}", []int64{class3}},
		"Nobody is in these groups.":                             {"x", []int64{nobody}},
	} {
		if _, wrong := keep(test.template, contacts.Audience{Groups: test.groups}); wrong != want {
			t.Errorf("%s: %s", want, wrong)
		}
	}
	foreign := campaigns.Campaign{ID: ulid.Make(), Company: 1, Audience: &contacts.Audience{Groups: []int64{class3, 99}}}
	if _, err := c.KeepGroups(ctx, lang, p.Company, &foreign); err == nil {
		t.Error("a group that is not there")
	}
	made, wrong := keep("{{nom}}: {{Solde}} FBu", contacts.Audience{Groups: []int64{class3, class5},
		Without: []int64{class4}})
	if wrong != "" {
		t.Fatal(wrong)
	}
	sums, err := c.Sums(ctx, &made)
	if err != nil || sums.Recipients != 1197 || sums.Faults != 1 || sums.OptedOut != 1 || sums.Blank != 1 ||
		sums.Repeated != 0 {
		t.Errorf("%+v, %v", sums, err)
	}
	made, err = c.Get(ctx, 1, made.ID)
	if err != nil || made.Audience == nil || !slices.Equal(made.Audience.Without, []int64{class4}) {
		t.Fatalf("%+v, %v", made, err)
	}
	// Meanwhile one leaves, one comes into class 4, one is deleted, and one joins, whom nobody has seen in the check.
	tx, err := pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, leave := range []int64{class3, class5} {
		if _, err := store.Leave(ctx, tx, 1, leave, "+25779000005"); err != nil {
			t.Fatal(err)
		}
	}
	for number, group := range map[sms.Number]int64{"+25779000006": class4, "+25779999999": class3} {
		if _, err := store.Join(ctx, tx, 1, group, number, contacts.Consent{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Erase(ctx, "+25779000007"); err != nil {
		t.Fatal(err)
	}
	marked, err := c.Recheck(ctx, lang, p, &made)
	if err != nil || !marked {
		t.Fatal(marked, err)
	}
	rows, err := c.Rows(ctx, &made, campaigns.Faults, 0, 10)
	var left []string
	for _, row := range rows {
		left = append(left, row.Number.National()+" "+row.Fault)
	}
	const gone = "This recipient is no longer in the groups."
	if err != nil || strings.Join(left, "; ") != ` No carrier serves “+25761000001”.; 79000005 `+gone+`; 79000006 `+
		gone+`; 79000007 `+gone {
		t.Errorf("%q, %v", left, err)
	}
	if err := c.Begin(ctx, p, &made, sums, time.Time{}); !errors.Is(err, campaigns.ErrChanged) { // as it was before
		t.Fatal(err)
	}
	if sums, err = c.Sums(ctx, &made); err != nil || sums.Recipients != 1194 {
		t.Fatalf("%+v, %v", sums, err)
	}
	if err := c.Begin(ctx, p, &made, sums, time.Time{}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := c.SendNext(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(`SELECT count(DISTINCT phone_number) FROM messages WHERE body ~ '^N[0-9]+: (100 )?FBu$|^N2:  FBu$'`); n != 1194 {
		t.Errorf("%d people got it", n)
	}
	if n := count(`SELECT count(*) FROM messages`); n != 1194 {
		t.Errorf("%d messages", n)
	}
}

// TestErase: a number is erased from campaigns that have not begun or have ended; of others it is told.
func TestErase(t *testing.T) {
	pool := testenv.Pool(t)
	for i, until := range []string{"NULL", "'infinity'", "now()"} {
		if _, err := pool.Exec(t.Context(), `WITH c AS (INSERT INTO campaigns (ulid, company_id, name, sender, template, reading,
				taken_until) VALUES (gen_random_uuid(), $1, '', '', '', '{}', `+until+`) RETURNING ulid)
			INSERT INTO campaign_rows (campaign, n, line, number, variables, segments, ucs2, opted_out, repeated)
			SELECT ulid, n, n, '+2577900000' || n, '{}', 1, false, false, false FROM c, generate_series(1, 2) n`, i+1); err != nil {
			t.Fatal(err)
		}
	}
	if pending, err := campaigns.Erase(t.Context(), pool, "+25779000001"); pending != 1 || err != nil {
		t.Error(pending, err)
	}
	var left int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM campaign_rows`).Scan(&left); left != 4 || err != nil {
		t.Error(left, err)
	}
}

// TestEraseMeanwhile: a campaign that is begun while a number is erased keeps its rows, and is told of.
func TestEraseMeanwhile(t *testing.T) {
	pool := testenv.Pool(t)
	testenv.Exec(t, pool, `WITH c AS (INSERT INTO campaigns (ulid, company_id, name, sender, template)
			VALUES (gen_random_uuid(), 1, '', '', '') RETURNING ulid)
		INSERT INTO campaign_rows (campaign, n, line, number, variables, segments, ucs2, opted_out, repeated)
		SELECT ulid, 1, 1, '+25779000001', '{}', 1, false, false, false FROM c`)
	taking, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taking.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := taking.Exec(t.Context(), `SET LOCAL idle_in_transaction_session_timeout = 0;
		UPDATE campaigns SET taken_until = now()`); err != nil {
		t.Fatal(err)
	}
	done := make(chan int64, 1)
	go func() {
		pending, err := campaigns.Erase(t.Context(), pool, "+25779000001")
		if err != nil {
			t.Error(err)
		}
		done <- pending
	}()
	for end := time.Now().Add(time.Minute); !testenv.Blocked(t, pool); <-time.After(10 * time.Millisecond) {
		if len(done) > 0 || time.Now().After(end) {
			t.Fatal("it does not wait")
		}
	}
	if err := taking.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if pending := <-done; pending != 1 {
		t.Errorf("%d rows are pending", pending)
	}
}

// TestSweepLeavesFirstPart: an old campaign whose first part is being sent stays until its batch is known.
func TestSweepLeavesFirstPart(t *testing.T) {
	pool := testenv.Pool(t)
	testenv.Exec(t, pool, `INSERT INTO campaigns (ulid, company_id, name, sender, template, created_at, taken_until, unsent)
		SELECT gen_random_uuid(), 1, '', '', '', now() - interval '25 hours', until, unsent
		FROM (VALUES (now(), false), ('infinity', false), (now() + interval '1 hour', false),
			(now() + interval '1 hour', true)) x (until, unsent)`) // the last is looked at again each minute
	c := campaigns.New(campaigns.Deps{Pool: pool, Log: slog.New(slog.DiscardHandler)})
	if err := c.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	var left, sending int
	if err := pool.QueryRow(t.Context(), `SELECT count(*), count(*) FILTER (WHERE taken_until > now() AND
		taken_until < 'infinity' AND NOT unsent) FROM campaigns`).Scan(&left, &sending); err != nil || left != 1 || sending != 1 {
		t.Errorf("%d are left, %d of them are being sent, %v", left, sending, err)
	}
}
