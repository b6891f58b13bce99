package dashboard

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/oklog/ulid/v2"

	"intumwa/campaigns"
	"intumwa/intake"
	"intumwa/internal/queue"
	"intumwa/internal/testenv"
	"intumwa/messages"
	"intumwa/sms"
)

// TestOutcomeUnknown: after an unknown outcome, the page does not claim that nothing was
// sent, and a second click neither sends nor charges again.
func TestOutcomeUnknown(t *testing.T) {
	w := newWorld(t, nil)
	c, company := w.merchant("aline", 100)
	client, prefix := testenv.Redis(t)
	routes, err := sms.NewRoutes([]sms.Route{{Carrier: "leo", Default: true}})
	if err != nil {
		t.Fatal(err)
	}
	campaign := c.send("/campaigns", "DEMO", "Bonjour", []byte("phone_number\n79000000\n")).Header.Get("Location") +
		"/send"
	key := c.key("/messages/new")
	for path, fields := range map[string][]string{
		"/messages/new": {"do", "send", "key", key, "sender", "DEMO", "number", "79222222", "message", "x"},
		campaign:        nil,
	} {
		line := &testenv.Line{}
		here := w.d.deps.Intake
		in := intake.New(testenv.Unheard(t, w.pool, line), w.holders, w.testNumbers, messages.New(w.pool),
			queue.New(client, queue.Options{Prefix: prefix}), routes, intake.Options{TestSender: testSender})
		running, end := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = in.Run(running) }()
		line.LoseAndCut()
		line.OnLost(t, end) // and with it the wait for the outcome
		deps := w.campaigns.Deps
		deps.Intake = in
		w.d.deps.Intake, w.d.deps.Campaigns = in, campaigns.New(deps)
		w.d.wire()
		page := c.post(path, fields...)
		c.wants(page, http.StatusServiceUnavailable, "may have been sent", "Try again")
		if strings.Contains(page.body, "Nothing was sent") {
			t.Errorf("%s: %s", path, page.body)
		}
		<-ended
		w.d.deps.Intake, w.d.deps.Campaigns = here, w.campaigns
		w.d.wire()
		c.wants(c.post(path, fields...), http.StatusSeeOther)
	}
	w.credits(company.ID, 98)
}

// TestUnknownRefusal: a campaign whose first part had an unknown outcome that was a refusal can be sent again at once,
// once, although its further parts are looked for.
func TestUnknownRefusal(t *testing.T) {
	w := stillWorld(t, nil)
	c, company := w.merchant("aline", 2000)
	path := c.send("/campaigns", "DEMO", "Bonjour {{name}}", []byte(recipients(1500))).Header.Get("Location") + "/send"
	w.exec(`update campaigns set taken_until = now()`) // as after an unknown outcome
	if !w.sendOn() {
		t.Fatal("nobody looked for the further parts")
	}
	c.wants(c.post(path), http.StatusSeeOther)
	w.credits(company.ID, 1000)
	w.sendAll()
	w.credits(company.ID, 500)
	w.audited()

	path = c.send("/campaigns", "DEMO", "Bonjour", []byte("phone_number\n79000000\n")).Header.Get("Location") + "/send"
	w.exec(`update campaigns set taken_until = now()`)
	w.sendOn()
	w.exec(`update campaigns set taken_until = now() + interval '1 minute', unsent = false`) // another click began it
	c.wants(c.post(path), http.StatusConflict, "It is being sent")

	// While nobody knows whether the first part will still be accepted, a try that fails does not make it a campaign that
	// never began: nobody would send its further parts.
	w.exec(`update campaigns set taken_until = now()`)
	w.sendOn()
	w.grant(company.ID, -500, "spent elsewhere")
	c.wants(c.post(path), http.StatusUnprocessableEntity, "You do not have enough credits.")
	w.counts(1, `select count(*) from campaigns where taken_until is not null`)
}

// TestLateFailure: a process that stood still for a minute and then cannot send the first part does not make a draft of
// the campaign that another click has begun: nobody would send its further parts.
func TestLateFailure(t *testing.T) {
	w := stillWorld(t, nil)
	c, company := w.merchant("aline", 1500)
	path := c.send("/campaigns", "DEMO", "Bonjour {{name}}", []byte(recipients(1500))).Header.Get("Location")
	made, err := w.campaigns.Get(t.Context(), sms.CompanyID(company.ID), ulid.MustParse(filepath.Base(path)))
	if err != nil {
		t.Fatal(err)
	}
	sums, err := w.campaigns.Sums(t.Context(), &made)
	if err != nil {
		t.Fatal(err)
	}
	p, err := w.holders.PrincipalOf(t.Context(), int64(w.count(`select owner_id from companies`)))
	if err != nil {
		t.Fatal(err)
	}
	config := w.pool.Config()
	taken, late, away, calls := make(chan struct{}), make(chan struct{}), errors.New("away"), 0
	config.PrepareConn = func(context.Context, *pgx.Conn) (bool, error) {
		if calls++; calls == 2 { // after it has taken the campaign
			close(taken)
			<-late
			return true, away
		}
		return true, nil
	}
	deps := w.campaigns.Deps
	if deps.Pool, err = pgxpool.NewWithConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	defer deps.Pool.Close()
	ended := make(chan error, 1)
	go func() { ended <- campaigns.New(deps).Begin(t.Context(), p, &made, sums, time.Time{}) }()
	<-taken
	w.exec(`update campaigns set taken_until = now()`) // a minute later
	w.sendOn()
	c.wants(c.post(path+"/send"), http.StatusSeeOther)
	close(late)
	if err := <-ended; !errors.Is(err, away) {
		t.Error(err)
	}
	w.sendAll()
	w.credits(company.ID, 0)
	w.audited()
}
