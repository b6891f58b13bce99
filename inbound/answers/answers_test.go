package answers

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/accounts/companies"
	"intumwa/accounts/keys"
	"intumwa/accounts/senders"
	"intumwa/accounts/testnumbers"
	"intumwa/billing"
	"intumwa/inbound/handsets"
	"intumwa/inbound/switchboard"
	"intumwa/intake"
	"intumwa/internal/postgres"
	"intumwa/internal/queue"
	"intumwa/internal/testenv"
	"intumwa/messages"
	"intumwa/messages/statistics"
	"intumwa/sms"
	"intumwa/webhooks"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// gateway is a gateway with one company, whose senders are 8080, 25779000009 and ACME.
type gateway struct {
	*testing.T
	pool    *pgxpool.Pool
	answers *Answers
	store   *handsets.Store
}

func newGateway(t *testing.T, credits int64) *gateway {
	t.Helper()
	pool := testenv.PoolWith(t, postgres.Options{BatchUpdates: true})
	g := &gateway{T: t, pool: pool, store: handsets.New(pool)}
	g.exec(`INSERT INTO users (email, name, password_hash) VALUES ('a@example.com', 'a', '')`)
	holders := keys.NewHolders(pool, keys.Options{})
	firms := companies.New(pool, holders.Forget)
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		c, err := firms.CreateCompany(t.Context(), tx, companies.NewCompany{OwnerEmail: "a@example.com", Name: "a",
			Approved: true})
		if err == nil {
			err = billing.Open(t.Context(), tx, c.ID)
		}
		if err == nil && credits > 0 {
			_, err = billing.Grant(t.Context(), tx, c.ID, credits, "test")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	names := senders.New(pool, "TEST", holders.Forget)
	for _, name := range []string{"8080", "25779000009", "ACME"} {
		if _, err := names.CreateSender(t.Context(), 1, name, "", true); err != nil {
			t.Fatal(err)
		}
	}
	rdb, prefix := testenv.Redis(t)
	routes, err := sms.NewRoutes([]sms.Route{{Carrier: "leo", Default: true}})
	if err != nil {
		t.Fatal(err)
	}
	in := intake.New(pool, holders, testnumbers.New(pool, testnumbers.Options{}), messages.New(pool),
		queue.New(rdb, queue.Options{Prefix: prefix}), routes, intake.Options{TestSender: "TEST"})
	g.run(in.Run)
	g.answers = New(Deps{Pool: pool, Companies: firms, Holders: holders, Intake: in, Log: slog.New(slog.DiscardHandler)})
	return g
}

func (g *gateway) run(part func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- part(ctx) }()
	g.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			g.Error(err)
		}
	})
}

func (g *gateway) exec(statement string, args ...any) {
	g.Helper()
	if _, err := g.pool.Exec(g.Context(), statement, args...); err != nil {
		g.Fatal(err)
	}
}

func (g *gateway) route(r handsets.Route) {
	g.Helper()
	r.CompanyID = 1
	if _, err := g.store.AddRoute(g.Context(), r); err != nil {
		g.Fatal(err)
	}
}

// due stores a message to the company whose answer is due.
func (g *gateway) due(from, to, keyword string) (id int64) {
	g.Helper()
	id, err := g.store.Insert(g.Context(), handsets.Message{CompanyID: 1, At: time.Now(), Carrier: "leo", From: from,
		To: to, Body: &keyword, Parts: 1, Keyword: keyword, Answer: handsets.AnswerDue})
	if err != nil {
		g.Fatal(err)
	}
	return id
}

// all returns the rows of one column.
func (g *gateway) all(query string, args ...any) []string {
	g.Helper()
	rows, err := g.pool.Query(g.Context(), query, args...)
	if err != nil {
		g.Fatal(err)
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		g.Fatal(err)
	}
	return values
}

func (g *gateway) sends() {
	g.Helper()
	if err := g.answers.Send(g.Context()); err != nil {
		g.Fatal(err)
	}
}

// sent returns the messages: sender, recipient, text and channel.
func (g *gateway) sent() []string {
	g.Helper()
	return g.all(`SELECT sender || ' ' || phone_number || ' ' || body || ' ' || coalesce(channel, 0) FROM messages
		ORDER BY id`)
}

// states returns what became of the answers.
func (g *gateway) states() []string {
	g.Helper()
	return g.all(`SELECT answer FROM inbound_messages ORDER BY id`)
}

// balanced fails unless the company has so many credits, and the ledger agrees.
func (g *gateway) balanced(credits string) {
	g.Helper()
	if got := g.all(`SELECT credits || ' ' || (SELECT sum(amount) FROM ledger) FROM balances`); !slices.Equal(
		got, []string{credits + " " + credits}) {
		g.Errorf("credits and ledger: %v, want %s", got, credits)
	}
	if audit, err := statistics.New(g.pool).Audit(g.Context(), time.Hour); err != nil || audit.Unpaid != 0 ||
		audit.Unrecorded != 0 {
		g.Errorf("audit: %+v, %v", audit, err)
	}
}

// TestEachAnswerOnce: however many processes look for answers at once, each is sent and charged once, from the address
// that the person wrote to, and marked with its ULID.
func TestEachAnswerOnce(t *testing.T) {
	g := newGateway(t, 100)
	g.route(handsets.Route{Address: "8080", Keyword: "PRIX", Answer: "Riz: 3000"})
	for range 20 {
		g.due("+25779000001", "8080", "PRIX")
	}
	var processes sync.WaitGroup
	for range 3 {
		processes.Go(func() {
			if err := g.answers.Send(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	processes.Wait()
	g.sends()
	got := g.sent()
	if slices.Sort(got); len(got) != 20 || got[0] != "8080 +25779000001 Riz: 3000 4" || got[0] != got[19] {
		t.Errorf("%d messages: %v", len(got), got)
	}
	if n := g.all(`SELECT count(*)::text FROM inbound_messages i JOIN messages m ON m.ulid = i.answer_id
		WHERE i.answer = 'sent'`); n[0] != "20" {
		t.Errorf("%s are marked", n[0])
	}
	g.balanced("80")
}

// TestAnswerThatFailed: a transaction that fails after it has marked the message sends and charges nothing, and the
// answer stays due.
func TestAnswerThatFailed(t *testing.T) {
	g := newGateway(t, 10)
	g.route(handsets.Route{Address: "8080", Keyword: "PRIX", Answer: "Riz"})
	g.due("+25779000001", "8080", "PRIX")
	g.exec(`ALTER TABLE messages ADD CONSTRAINT refusing CHECK (body <> 'Riz')`)
	if err := g.answers.Send(t.Context()); err == nil {
		t.Error("no error")
	}
	if got := g.states(); !slices.Equal(got, []string{"due"}) {
		t.Errorf("%v", got)
	}
	g.balanced("10")
	g.exec(`ALTER TABLE messages DROP CONSTRAINT refusing`)
	g.sends()
	if got := g.states(); !slices.Equal(got, []string{"sent"}) || len(g.sent()) != 1 {
		t.Errorf("%v, %v", got, g.sent())
	}
	g.balanced("9")
}

// TestOneCompanyFails: answers of a company that cannot be charged leave those of the others alone.
func TestOneCompanyFails(t *testing.T) {
	g := newGateway(t, 100)
	g.route(handsets.Route{Address: "8080", Keyword: "PRIX", Answer: "Riz"})
	if _, err := g.store.AddRoute(t.Context(), handsets.Route{CompanyID: 7, Address: "9090", Answer: "x"}); err != nil {
		t.Fatal(err)
	}
	for range listed + 1 { // there is no company 7
		if _, err := g.store.Insert(t.Context(), handsets.Message{CompanyID: 7, At: time.Now(), Carrier: "leo",
			From: "+25779000002", To: "9090", Body: new("x"), Parts: 1, Answer: handsets.AnswerDue}); err != nil {
			t.Fatal(err)
		}
	}
	g.due("+25779000001", "8080", "PRIX")
	if err := g.answers.Send(t.Context()); err == nil {
		t.Error("no error")
	}
	if got := g.sent(); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

// TestUnsentAnswers: an answer obeys the rules of a single send, and the reason is noted. STOP stands above it.
func TestUnsentAnswers(t *testing.T) {
	const prix = "8080 +25779000001 Riz 4"
	for name, c := range map[string]struct {
		before string // a statement
		want   string
		sent   []string
	}{
		"nothing":      {"SELECT", "sent", []string{prix}},
		"not approved": {"UPDATE companies SET approved = false", "company_not_approved", nil},
		"sender refused": {"UPDATE senders SET approved = false WHERE name = '8080'", "sent",
			[]string{"ACME +25779000001 Riz 4"}},
		"both senders refused": {"UPDATE senders SET approved = false", "sender_not_approved", nil},
		"sender gone":          {"DELETE FROM senders WHERE name = '8080'", "sender_not_approved", nil},
		"route gone":           {"DELETE FROM inbound_routes WHERE keyword = 'PRIX'", "no_route", nil},
		"another's route":      {"UPDATE inbound_routes SET company_id = 2", "no_route", nil},
		"no answer any more":   {"UPDATE inbound_routes SET answer = NULL", "no_route", nil},
		"late":                 {"UPDATE inbound_messages SET received_at = now() - interval '2 hours'", "late", nil},
		"opted out of all": {`WITH c AS (UPDATE companies SET opt_outs = true)
			INSERT INTO opt_outs (company_id, phone_number, source) VALUES (1, '+25779000001', 'handset')`, "opted_out", nil},
		"opted out, and intake does not know it yet": {`INSERT INTO opt_outs (company_id, phone_number, source)
			VALUES (1, '+25779000001', 'handset')`, "opted_out", nil},
		"opted out of the route's sender": {`WITH c AS (UPDATE companies SET opt_outs = true)
			INSERT INTO opt_outs (company_id, phone_number, sender, source) VALUES (1, '+25779000001', 'ACME', 'handset')`,
			"opted_out", nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t, 10)
			g.route(handsets.Route{Address: "8080", Keyword: "PRIX", Sender: "ACME", Answer: "Riz"})
			g.route(handsets.Route{Address: "8080", Answer: "Ecrivez PRIX"})
			g.due("+25779000001", "8080", "PRIX")
			if name == "sender gone" { // then the route's sends, which is not approved here
				g.exec(`UPDATE senders SET approved = false WHERE name = 'ACME'`)
			}
			g.exec(c.before)
			g.sends()
			if got := g.states(); !slices.Equal(got, []string{c.want}) || !slices.Equal(g.sent(), c.sent) {
				t.Errorf("%v, %v; want %s, %v", got, g.sent(), c.want, c.sent)
			}
		})
	}
}

// TestWithoutCredits: without credits the messages are kept, and the owner gets one mail, however many processes note
// it. With credits new messages are answered; the old ones are not.
func TestWithoutCredits(t *testing.T) {
	g := newGateway(t, 1)
	g.route(handsets.Route{Address: "8080", Answer: "Murakoze"})
	letters := func() []string { return g.all(`SELECT kind || ' ' || said::text FROM letters`) }
	for range 8 {
		g.due("+25779000001", "8080", "")
	}
	var processes sync.WaitGroup
	for range 3 {
		processes.Go(func() {
			if err := g.answers.Send(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	processes.Wait()
	g.sends()
	states := g.states()
	if slices.Sort(states); len(states) != 8 || states[6] != "insufficient_credits" || states[7] != "sent" {
		t.Fatalf("%v", states)
	}
	if got := letters(); !slices.Equal(got, []string{`balance {"credits": 0, "threshold": 0, "unanswered": true}`}) {
		t.Errorf("letters %q", got)
	}
	g.balanced("0")
	g.exec(`DELETE FROM letters`) // sent
	g.due("+25779000002", "8080", "")
	g.sends()
	if got := letters(); len(got) != 0 {
		t.Errorf("told again: %q", got)
	}
	if err := pgx.BeginFunc(t.Context(), g.pool, func(tx pgx.Tx) error {
		_, err := billing.Grant(t.Context(), tx, 1, 5, "test")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	g.due("+25779000003", "8080", "")
	g.sends()
	if got := g.sent(); len(got) != 2 {
		t.Errorf("%v", got)
	}
	g.balanced("4")
	g.exec(`UPDATE inbound_messages SET received_at = now() - interval '25 hours'`)
	g.exec(`UPDATE balances SET credits = 0`)
	g.due("+25779000004", "8080", "")
	g.sends()
	if got := letters(); len(got) != 1 {
		t.Errorf("a day later: %q", got)
	}
}

// TestGatewaysThatAnswerEachOther: two gateways whose answers are messages to the other one stop after one message
// each, in all processes and after a restart.
func TestGatewaysThatAnswerEachOther(t *testing.T) {
	numbers := []string{"25779000008", "25779000009"}
	var gateways []*gateway
	var boards []*switchboard.Switchboard
	for i := range 2 {
		g := newGateway(t, 10)
		g.exec(`INSERT INTO senders (company_id, name, approved) VALUES (1, '25779000008', true) ON CONFLICT DO NOTHING`)
		g.exec(`DELETE FROM senders WHERE name = $1`, numbers[1-i]) // each has its own
		g.route(handsets.Route{Address: numbers[i], Answer: "Merci de votre message"})
		names := senders.New(g.pool, "TEST", nil)
		boards = append(boards, switchboard.New(g.pool, companies.New(g.pool, nil), names,
			webhooks.New(g.pool, webhooks.Options{}), switchboard.Options{Answer: g.answers.Kick}))
		gateways = append(gateways, g)
	}
	// carry gives all messages of a gateway that were not carried yet to the other one.
	carried := []int{0, 0}
	carry := func(from int) (n int) {
		t.Helper()
		for _, text := range gateways[from].all(`SELECT body FROM messages WHERE phone_number = $1 ORDER BY id`,
			"+"+numbers[1-from])[carried[from]:] {
			n++
			deliver(gateways[1-from], numbers[from], numbers[1-from], text)
		}
		carried[from] += n
		return n
	}
	deliver(gateways[0], numbers[1], numbers[0], "Muraho") // a person with the other gateway's number
	for quiet := 0; quiet < 2; {
		quiet++
		for i, g := range gateways {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- boards[i].Run(ctx) }() // another process each time
			g.routed()
			cancel()
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			g.sends()
			if carry(i) > 0 {
				quiet = 0
			}
		}
		if carried[0]+carried[1] > 4 {
			t.Fatal("they do not stop")
		}
	}
	if carried[0] != 1 || carried[1] != 1 {
		t.Errorf("they sent %v messages, want one each", carried)
	}
	if got := gateways[0].states(); !slices.Equal(got, []string{"sent", "repeated"}) {
		t.Errorf("%v", got)
	}
}

// deliver stores an MO, as a dispatcher does.
func deliver(g *gateway, from, to, text string) {
	g.Helper()
	if err := pgx.BeginFunc(g.Context(), g.pool, func(tx pgx.Tx) error {
		return g.store.Keep(g.Context(), tx, []handsets.Inbound{{At: time.Now(), Carrier: "leo", Link: "leo-1",
			Source: from, Destination: to, Body: &text, Octets: []byte(text)}})
	}); err != nil {
		g.Fatal(err)
	}
}

// routed waits until no MO is new.
func (g *gateway) routed() {
	g.Helper()
	for end := time.Now().Add(time.Minute); ; <-time.After(5 * time.Millisecond) {
		switch since, err := g.store.Waits(g.Context()); {
		case err == nil && since.IsZero():
			return
		case time.Now().After(end):
			g.Fatal(errors.Join(errors.New("an MO is not routed"), err))
		}
	}
}
