package dashboard

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/dispatcher"
	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
	"intumwa/messages"
	"intumwa/queue"
	"intumwa/smpp"
	"intumwa/sms"
	"intumwa/tools/carriersim"
	"intumwa/webhooks"
)

// bind runs a dispatcher beside the dashboard, as another process would: they share the database and nothing else.
// Its first link is bound to a carrier, the second finds nobody listening.
func (w *world) bind() (carrier *carriersim.Carrier, stop func()) {
	t := w.t
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	carrier = carriersim.New(carriersim.Options{Seed: 7, NoFates: true})
	w.run(func(ctx context.Context) error { _ = carrier.Serve(ctx, listener); return nil })
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = nobody.Close()
	hot, err := postgres.Open(t.Context(), w.pool.Config().ConnString(), postgres.Options{BatchUpdates: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hot.Close)
	pool, err := postgres.Open(t.Context(), w.pool.Config().ConnString(), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	rdb, prefix := testenv.Redis(t)
	link := func(name, address string) dispatcher.Link {
		return dispatcher.Link{Options: smpp.Options{Name: name, Address: address, SystemID: "intumwa", Password: "secret", Window: 20, TPS: 200,
			EnquireLink: 2 * time.Second, DrainTimeout: 500 * time.Millisecond, UnbindTimeout: 500 * time.Millisecond}}
	}
	d, err := dispatcher.New(pool, hot, queue.New(rdb, queue.Options{Prefix: prefix}), webhooks.New(pool, webhooks.Options{}),
		dispatcher.Options{Heartbeat: 200 * time.Millisecond, SweepInterval: 100 * time.Millisecond, Carriers: []dispatcher.Carrier{
			{Name: "econet", Links: []dispatcher.Link{link("econet-1", nobody.Addr().String())}},
			{Name: "lumitel", SourceTON: 5, DestTON: 1, DestNPI: 1, Links: []dispatcher.Link{link("lumitel-1", listener.Addr().String()), link("lumitel-2", listener.Addr().String())}},
		}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := d.Run(ctx); err != nil {
			t.Errorf("the dispatcher ended: %v", err)
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(stop)
	w.link("lumitel-1", "bound")
	w.link("lumitel-2", "bound")
	return carrier, stop
}

// link waits until a link is in a state.
func (w *world) link(name, state string) {
	w.t.Helper()
	w.soon("the link "+name+" is "+state, func() bool {
		links, err := dispatcher.Links(w.t.Context(), w.pool)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, l := range links {
			if l.Link == name && l.State == state {
				return true
			}
		}
		return false
	})
}

func (w *world) soon(what string, is func() bool) {
	w.t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("it is not so that %s", what)
		}
	}
}

// accept records a message of a company, as intake does.
func (w *world) accept(company, user int64, number sms.Number, carrier string) ulid.ULID {
	w.t.Helper()
	var approved bool
	if err := w.pool.QueryRow(w.t.Context(), `select approved from companies where id = $1`, company).Scan(&approved); err != nil {
		w.t.Fatal(err)
	}
	m := &messages.Message{ULID: ulid.Make(), CompanyID: company, UserID: user, Number: number, Sender: "ISOKO", Body: "Amahoro <b>", Encoding: sms.GSM7,
		Segments: 1, Carrier: carrier, Validity: time.Hour, Test: !approved} // without an approval only a test message is carried
	err := pgx.BeginFunc(w.t.Context(), w.pool, func(tx pgx.Tx) error {
		_, err := messages.New(w.pool).Insert(w.t.Context(), tx, []*messages.Message{m})
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return m.ULID
}

// settled waits until a message is final.
func (w *world) settled(id ulid.ULID) {
	w.t.Helper()
	w.soon("the message "+id.String()+" is final", func() bool {
		m, err := messages.New(w.pool).AnybodysByULID(w.t.Context(), id)
		return err == nil && m.Status.Final()
	})
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.pool.Exec(context.WithoutCancel(w.t.Context()), sql, args...); err != nil {
		w.t.Fatal(err)
	}
}
