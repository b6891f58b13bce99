package ebms

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"intumwa/internal/testenv"
	"intumwa/tools/ebmssim"
)

// office is a database with invoices, and an eBMS.
type office struct {
	*testing.T

	pool *pgxpool.Pool
	sim  *ebmssim.Sim
	url  string
}

func newOffice(t *testing.T) *office {
	t.Helper()
	sim, server := simulate(t, ebmssim.Faults{})
	return &office{t, testenv.Pool(t), sim, server.URL}
}

// issue queues invoices by their names: F000001, or A000001, the credit note of F000001.
func (o *office) issue(names ...string) {
	o.Helper()
	for _, name := range names {
		v := invoiceOf(name)
		if err := Queue(o.Context(), o.pool, Queued{name, v.RefersTo, v.Identifier, v.Issued}); err != nil {
			o.Fatal(err)
		}
	}
}

func invoiceOf(name string) *Invoice {
	n, _ := strconv.Atoi(name[1:])
	if name[0] == 'A' {
		return credit(n, sale(n))
	}
	return sale(n)
}

// process is another process's reporter.
func (o *office) process() *Reporter {
	return NewReporter(o.pool, Options{Client: client(o.T, o.url), Log: slog.New(slog.DiscardHandler),
		Read:    func(_ context.Context, name string) (*Invoice, error) { return invoiceOf(name), nil },
		Metrics: prometheus.NewRegistry()})
}

func (o *office) exec(query string, args ...any) {
	o.Helper()
	if _, err := o.pool.Exec(o.Context(), query, args...); err != nil {
		o.Fatal(err)
	}
}

// batch makes everything due and runs one batch.
func (o *office) batch(r *Reporter) (attempts int) {
	o.Helper()
	o.exec(`update ebms_reports set due_at = now() where finished_at is null`)
	n, err := r.batch(o.Context())
	if err != nil {
		o.Fatal(err)
	}
	return n
}

// received are the names that the eBMS has, in its order.
func (o *office) received() (names []string) {
	for _, v := range o.sim.Invoices() {
		names = append(names, v.Number)
	}
	return names
}

// states are the states of reports by name, with their words.
func (o *office) states(names ...string) string {
	o.Helper()
	all, err := Reports(o.Context(), o.pool, names...)
	if err != nil {
		o.Fatal(err)
	}
	var states []string
	for _, name := range names {
		r := all[name]
		states = append(states, string(r.State()))
	}
	return strings.Join(states, " ")
}

func (o *office) again(name string, to Retry) error {
	return pgx.BeginFunc(o.Context(), o.pool, func(tx pgx.Tx) error {
		_, _, err := Again(o.Context(), tx, name, to)
		return err
	})
}

// TestTwoProcesses: whatever goes wrong, the eBMS gets each invoice once, in their order, and one at a time.
func TestTwoProcesses(t *testing.T) {
	o := newOffice(t)
	var names []string
	for n := range 40 {
		names = append(names, fmt.Sprintf("F%06d", n))
		if n%10 == 9 {
			names = append(names, fmt.Sprintf("A%06d", n))
		}
	}
	o.issue(names...)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	for range 2 {
		r := o.process()
		go func() {
			for ctx.Err() == nil {
				if _, err := r.batch(ctx); err != nil && ctx.Err() == nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	faults := []ebmssim.Faults{{CutAfterStore: 2}, {Fail: true}, {HTML: true}, {}, {Cut: true}, {TokenLife: time.Nanosecond},
		{ResultArray: true}, {CutAfterStore: 1, DuplicateStatus: 409}, {}}
	posted := func() int { n := o.sim.Calls(); return n["login/"] + n["addInvoice_confirm/"] }
	for i, deadline := 0, time.Now().Add(3*time.Minute); len(o.received()) < len(names); i++ {
		o.sim.Faults(func(f *ebmssim.Faults) { *f = faults[i%len(faults)] })
		for before := posted(); posted() < before+2 && len(o.received()) < len(names); { // at least one has an invoice
			if time.Now().After(deadline) {
				t.Fatal("late: ", o.received())
			}
			o.exec(`update ebms_reports set due_at = now(), faults = 0 where finished_at is null`)
			time.Sleep(5 * time.Millisecond) // of load
		}
	}
	o.sim.Faults(func(f *ebmssim.Faults) { *f = ebmssim.Faults{} })
	for c := (Counts{Waiting: 1}); c.Waiting > 0; {
		o.exec(`update ebms_reports set due_at = now() where finished_at is null`)
		var err error
		if c, err = Count(t.Context(), o.pool); err != nil || c.Refused > 0 {
			t.Fatal(c, err)
		}
	}
	cancel()
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if got := o.received(); !slices.Equal(got, names) {
		t.Errorf("%v\nwant %v", got, names)
	}
	if n := o.sim.Calls(); n["at once"] != 1 || n["duplicates"] == 0 {
		t.Errorf("%v", n)
	}
	all, err := Reports(t.Context(), o.pool, names...)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range o.sim.Invoices() {
		if r := all[v.Number]; r.Identifier != v.Identifier || r.State() != Received || r.Words != "" {
			t.Errorf("%+v", r)
		}
	}
}

// TestRefusedWaits: a refused invoice waits for a person and lets the others pass, but not its credit note. The person
// repeats it, leaves the customer's NIF out, or notes how it was settled.
func TestRefusedWaits(t *testing.T) {
	o := newOffice(t)
	r := o.process()
	o.issue("F000001", "F000002", "A000001", "F000003", "A000003")
	o.sim.Faults(func(f *ebmssim.Faults) { f.UnknownTINs = []string{"4000999999"} })
	if n := o.batch(r); n != 3 || o.states("F000001", "A000001", "F000003") != "refused waiting refused" {
		t.Errorf("%d attempts, %s", n, o.states("F000001", "A000001", "F000003"))
	}
	if n := o.batch(r); n != 0 {
		t.Errorf("%d attempts of what waits for a person", n)
	}
	pending, err := Pending(t.Context(), o.pool, 10)
	if err != nil || len(pending) != 5 || !strings.HasPrefix(pending[0].Words, "Le NIF du client n'est pas connu") {
		t.Errorf("%+v, %v", pending, err)
	}
	if err := o.again("F000001", Retry{WithoutNIF: true}); err != nil {
		t.Error(err)
	}
	if n := o.batch(r); n != 2 || !slices.Equal(o.received(), []string{"F000001"}) { // the note's NIF is unknown too
		t.Errorf("%d attempts, %v", n, o.received())
	}
	o.sim.Faults(func(f *ebmssim.Faults) { f.UnknownTINs = nil })
	if err := o.again("F000002", Retry{}); err != nil {
		t.Error(err)
	}
	if err := o.again("F000003", Retry{Settled: " On paper, 12 November "}); err != nil {
		t.Error(err)
	}
	o.batch(r)
	if got := o.states("F000001", "F000002", "A000001", "F000003", "A000003"); got !=
		"received received refused settled refused" {
		t.Error(got)
	}
	for name, want := range map[string]error{"F000001": ErrFinished, "F000003": ErrFinished, "F000009": ErrNoReport} {
		if err := o.again(name, Retry{}); err != want { //nolint:errorlint // exactly it
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := o.again("A000001", Retry{Settled: "a\nb"}); err != ErrNote { //nolint:errorlint // exactly it
		t.Error(err)
	}
}

// TestSettledDuringAttempt: what is just being reported is not settled by hand, nor changed: the OBR may have it next.
func TestSettledDuringAttempt(t *testing.T) {
	o := newOffice(t)
	o.issue("F000001")
	c, err := take(t.Context(), o.pool, claimTime)
	if err != nil || c == nil {
		t.Fatal(c, err)
	}
	for _, to := range []Retry{{Settled: "on paper"}, {WithoutNIF: true}} {
		if err := o.again("F000001", to); err != ErrClaimed { //nolint:errorlint // exactly it
			t.Errorf("%+v: %v", to, err)
		}
	}
	if err := received(t.Context(), o.pool, c, Receipt{}); err != nil || o.states("F000001") != "received" {
		t.Errorf("%s, %v", o.states("F000001"), err)
	}
	o.issue("F000002")
	if c, err = take(t.Context(), o.pool, claimTime); err != nil || c == nil {
		t.Fatal(c, err)
	}
	o.exec(`update ebms_reports set claimed_until = now()`) // the process died
	if err := o.again("F000002", Retry{Settled: "on paper"}); err != nil || o.states("F000002") != "settled" {
		t.Errorf("%s, %v", o.states("F000002"), err)
	}
}

// TestFaultsLetPass: an invoice that the eBMS cannot handle holds the others up for ten attempts, an eBMS that is away
// for as long as it is.
func TestFaultsLetPass(t *testing.T) {
	o := newOffice(t)
	r := o.process()
	o.issue("F000001", "F000002")
	due := func() int {
		t.Helper()
		o.exec(`update ebms_reports set due_at = now() where name = 'F000001'`)
		n, err := r.batch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	o.sim.Faults(func(f *ebmssim.Faults) { f.BadGateway = true })
	for range 2 * PassAfter {
		if n := due(); n != 1 {
			t.Fatalf("%d attempts", n)
		}
	}
	o.sim.Faults(func(f *ebmssim.Faults) { f.BadGateway, f.Fail = false, true })
	for range PassAfter - 1 {
		if n := due(); n != 1 {
			t.Fatalf("%d attempts", n)
		}
	}
	if n := due(); n != 2 {
		t.Errorf("%d attempts: the second invoice has its turn", n)
	}
	var pause int
	if err := o.pool.QueryRow(t.Context(), `select extract(epoch from due_at - now())::int from ebms_reports
		where name = 'F000001'`).Scan(&pause); err != nil || pause < 290 || pause > 300 {
		t.Errorf("pause %d s, %v", pause, err)
	}
	o.sim.Faults(func(f *ebmssim.Faults) { f.Fail = false })
	o.batch(r)
	if got := o.states("F000001", "F000002"); got != "received received" {
		t.Error(got)
	}
}

// TestOneFails: whatever always becomes of the request of one invoice after the login, it lets the others pass in the
// end.
func TestOneFails(t *testing.T) {
	refuse := func(status int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
		}
	}
	for name, fail := range map[string]http.HandlerFunc{
		"a page":              refuse(500, "<h1>Whoops</h1>"),
		"a page with 200":     refuse(200, "<h1>Connexion</h1>"),
		"a forbidden page":    refuse(403, "<h1>Forbidden</h1>"),
		"a forbidden message": refuse(403, `{"message":"Forbidden"}`),
		"cut":                 func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"too slow":            func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err == nil && strings.Contains(r.URL.Path, "addInvoice") && bytes.Contains(body, []byte("F000001")) {
					fail(w, r)
					return
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				o.sim.ServeHTTP(w, r)
			}))
			defer front.Close()
			o.url = front.URL
			r := o.process()
			if name == "too slow" {
				r.opts.Client.http.Timeout = 100 * time.Millisecond
			}
			o.issue("F000001", "F000002")
			for tries := 0; o.states("F000002") != "received" && tries < 10*PassAfter; tries++ {
				o.batch(r)
			}
			var faults int
			if err := o.pool.QueryRow(t.Context(), `select faults from ebms_reports where name = 'F000001'`).Scan(
				&faults); err != nil || faults < PassAfter || o.states("F000001", "F000002") != "waiting received" {
				t.Errorf("%d faults, %v, %s", faults, err, o.states("F000001", "F000002"))
			}
		})
	}
}

// TestDiedAfterStore: the process dies after the eBMS has stored the invoice. When its claim is over, another one
// proves it, and nothing else was claimed before.
func TestDiedAfterStore(t *testing.T) {
	o := newOffice(t)
	o.issue("F000001", "F000002")
	c, err := take(t.Context(), o.pool, claimTime)
	if err != nil || c == nil || c.Name != "F000001" {
		t.Fatal(c, err)
	}
	if _, _, err := o.process().attempt(t.Context(), nil, c); err != nil {
		t.Fatal(err)
	}
	other := o.process()
	if n := o.batch(other); n != 0 {
		t.Errorf("%d attempts while the claim holds", n)
	}
	o.exec(`update ebms_reports set claimed_until = now() where name = 'F000001'`)
	if n := o.batch(other); n != 2 || !slices.Equal(o.received(), []string{"F000001", "F000002"}) ||
		o.states("F000001", "F000002") != "received received" {
		t.Errorf("%d attempts, %v, %s", n, o.received(), o.states("F000001", "F000002"))
	}
	if err := received(t.Context(), o.pool, c, Receipt{Raw: []byte("{}"), Signature: "a\x00b\xff",
		Registered: strings.Repeat("9", 2000)}); err != nil {
		t.Error(err)
	}
	all, err := Reports(t.Context(), o.pool, "F000001")
	if r := all["F000001"]; err != nil || r.Signature != "ab" || len(r.Registered) > 1010 {
		t.Errorf("%+v, %v", r, err)
	}
	if err := refused(t.Context(), o.pool, c, "late"); err != nil || o.states("F000001") != "received" {
		t.Errorf("a late result changes it: %v", err)
	}
}

// TestAnothersNumber: the eBMS has another invoice with this number: a person must look at it.
func TestAnothersNumber(t *testing.T) {
	o := newOffice(t)
	r := o.process()
	s, err := client(t, o.url).Login(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other := sale(1)
	other.Issued = other.Issued.Add(-time.Hour)
	other.Identifier = Identifier(nif, system, other.Issued, other.Number)
	if _, err := s.Add(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	o.issue("F000001")
	o.batch(r)
	all, err := Reports(t.Context(), o.pool, "F000001")
	if got := all["F000001"]; err != nil || got.State() != Refusal || !strings.Contains(got.Words, "existe déjà") ||
		!strings.Contains(got.Words, "lost database") {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestUnsendable: what the eBMS would refuse is not sent, and waits for a person.
func TestUnsendable(t *testing.T) {
	o := newOffice(t)
	r := o.process()
	r.opts.Read = func(_ context.Context, name string) (*Invoice, error) {
		v := invoiceOf(name)
		v.Seller.Phone = ""
		return v, nil
	}
	o.issue("F000001")
	o.batch(r)
	all, err := Reports(t.Context(), o.pool, "F000001")
	if got := all["F000001"]; err != nil || got.State() != Refusal ||
		got.Words != "not sent: tp_phone_number is required and empty" || len(o.sim.Calls()) != 0 {
		t.Errorf("%+v, %v, %v", got, err, o.sim.Calls())
	}
}

// TestShutdown: the reporter ends with its context, and gives its claim back.
func TestShutdown(t *testing.T) {
	o := newOffice(t)
	o.issue("F000001")
	o.sim.Faults(func(f *ebmssim.Faults) { f.Slow = time.Hour })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- o.process().Run(ctx) }()
	for o.sim.Calls()["login/"] == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	o.sim.Faults(func(f *ebmssim.Faults) { f.Slow = 0 })
	if n := o.batch(o.process()); n != 1 || o.states("F000001") != "received" {
		t.Errorf("%d attempts, %s", n, o.states("F000001"))
	}
}
