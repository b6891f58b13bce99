package dashboard

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/accounts"
	"intumwa/billing"
	"intumwa/dispatcher"
	"intumwa/inbound/handsets"
	"intumwa/intake"
	"intumwa/internal/testenv"
	"intumwa/messages"
	"intumwa/queue"
	"intumwa/smpp"
	"intumwa/sms"
	"intumwa/tools/carriersim"
	"intumwa/webhooks"
)

const testSender = "INTUMWATEST"

// gateway is what stands behind the pages: the rooms that send, and, once [gateway.carry] was called, a dispatcher with a
// carrier.
type gateway struct {
	w     *world
	queue *queue.Queue
	hooks *webhooks.Webhooks
	sim   *carriersim.Carrier
}

// newGateway adds the rooms that send to a dashboard's.
func newGateway(w *world, rooms *Rooms, options *Options) *gateway {
	w.t.Helper()
	client, prefix := testenv.Redis(w.t)
	g := &gateway{w: w, queue: queue.New(client, queue.Options{Prefix: prefix}),
		hooks: w.hooks, sim: carriersim.New(carriersim.Options{Seed: 7, NoFates: true})}
	routes, err := sms.NewRoutes([]sms.Route{{Carrier: "lumitel", Prefixes: []string{"6"}}, {Carrier: "leo", Prefixes: []string{"7"}}})
	if err != nil {
		w.t.Fatal(err)
	}
	store := messages.New(w.pool)
	rooms.Intake = intake.New(w.pool, w.accounts, store, g.queue, routes, intake.Options{TestSender: testSender, TestQuota: 5})
	rooms.Messages, rooms.Handsets = store, handsets.New(w.pool)
	options.Plan, options.TestSender, options.TestQuota, options.Replacements = sms.NewPlan("6", "7"), testSender, 5, 3
	options.APIURL = "https://api.example.com/v1"
	w.run(rooms.Intake.Run)
	return g
}

// carry runs a dispatcher whose carrier leo is the simulator.
func (g *gateway) carry() {
	g.w.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		g.w.t.Fatal(err)
	}
	g.w.run(func(ctx context.Context) error { return g.sim.Serve(ctx, listener) })
	link := dispatcher.Link{Options: smpp.Options{Name: "leo-1", Address: listener.Addr().String(), SystemID: "test", Window: 10,
		DrainTimeout: 100 * time.Millisecond, UnbindTimeout: 100 * time.Millisecond}}
	d, err := dispatcher.New(g.w.pool, g.w.pool, g.queue, g.hooks, dispatcher.Options{
		Log:      slog.New(slog.NewTextHandler(g.w.t.Output(), nil)),
		Carriers: []dispatcher.Carrier{{Name: "leo", OnReceiptTimeout: sms.Failed, SourceTON: 5, DestTON: 1, DestNPI: 1, Links: []dispatcher.Link{link}}}})
	if err != nil {
		g.w.t.Fatal(err)
	}
	g.w.run(d.Run)
}

// heard are the texts that a handset got, once there are so many.
func (g *gateway) heard(number string, n int) []string {
	g.w.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		var texts []string
		for _, m := range g.sim.Messages() {
			if "+"+m.Destination == number && m.Complete {
				texts = append(texts, m.Text)
			}
		}
		if len(texts) >= n {
			return texts
		}
	}
	g.w.t.Fatalf("%s got fewer than %d messages", number, n)
	return nil
}

// customer is a user with an approved company, a sender ID and credits, signed in.
func (w *world) customer(name, sender string, credits int64) (*client, accounts.User, accounts.Company) {
	w.t.Helper()
	email := name + "@example.com"
	u := w.user(email, false)
	c := w.company(email, name)
	ctx, yes := w.t.Context(), true
	if _, err := w.accounts.SetCompany(ctx, c.ID, accounts.CompanyChange{Approved: &yes, Verified: &yes}); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.accounts.CreateSender(ctx, c.ID, sender, "BI", true); err != nil {
		w.t.Fatal(err)
	}
	if credits > 0 {
		if err := w.grant(c.ID, credits, "for a test"); err != nil {
			w.t.Fatal(err)
		}
	}
	browser := newClient(w)
	browser.signIn(email)
	return browser, u, c
}

// insert records messages of the test as intake does, with nobody to carry them, and answers their ids.
func (w *world) insert(list ...*messages.Message) (ids []int64) {
	w.t.Helper()
	for _, m := range list {
		m.ULID, m.Sender, m.Segments, m.Carrier, m.Validity = ulid.Make(), "DEMO", 1, "lumitel", time.Hour
	}
	err := pgx.BeginFunc(w.t.Context(), w.pool, func(tx pgx.Tx) (err error) {
		ids, err = messages.New(w.pool).Insert(w.t.Context(), tx, list)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return ids
}

// balance is a company's credits.
func (g *gateway) balance(company int64) (int64, error) {
	return billing.New(g.w.pool).Balance(g.w.t.Context(), company)
}
