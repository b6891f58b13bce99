package dashboard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"intumwa/accounts"
	"intumwa/billing"
	"intumwa/dashboard/words"
	"intumwa/intake"
	"intumwa/mail"
	"intumwa/messages"
	"intumwa/sms"
	"intumwa/throttle"
	"intumwa/webhooks"
)

// Options of [New].
type Options struct {
	PublicURL      string        // where people reach it, for links in mails: https://sms.example.com
	DocsURL        string        // of the API's reference; empty: no link to it
	APIURL         string        // {base_url} of the API, for examples: https://sms.example.com/v1
	TrustedProxies []string      // whose X-Forwarded-For counts
	SecureCookies  bool          // cookies over HTTPS only
	SessionIdle    time.Duration // an unused session ends; 12 h if 0
	AdminTOTP      bool          // administrators prove themselves by their second factor, not by their password
	Plan           *sms.Plan     // valid numbers
	TestSender     string
	TestQuota      int // test segments an account
	Replacements   int // how often a verified test number may be replaced
	Log            *slog.Logger
	Metrics        prometheus.Registerer // nil: not registered

	LowBalanceEvery time.Duration // how often balances are looked at; a minute if 0
}

// Rooms are what the dashboard is the face of.
type Rooms struct {
	Pool     *pgxpool.Pool // for what two rooms do in one transaction
	Accounts *accounts.Accounts
	Ledger   *billing.Ledger
	Intake   *intake.Intake
	Messages *messages.Store // only looks up: on a pool apart from that of the sends
	Webhooks *webhooks.Webhooks
	Sends    *throttle.Throttle // how many a user may send a minute, pages and API together; nil: not bounded
	Mailer   *mail.Mailer
	Tries    Tries

	Statements *billing.Ledger // of what may be long: on the pool of Messages
}

// Tries bound what a stranger may try in a quarter of an hour. Nil: not bounded.
type Tries struct {
	Account *throttle.Throttle // sign-ins to one account; codes of one user; links to one address of mail
	Address *throttle.Throttle // all of these from one network address
	Tests   *throttle.Throttle // test events to one company's endpoint
}

// Dashboard serves the pages.
type Dashboard struct {
	opts   Options
	log    *slog.Logger
	rooms  Rooms
	words  *words.Words
	pages  pages
	assets assets
	seen   *metrics
	forged *http.CrossOriginProtection

	exports exports
	counter *messages.Store // counts for the charts, in the background
	uploads chan struct{}   // a place for each file that is being read
	board   *board
	streams *streams
	decided chan struct{} // wakes runLetters

	handler http.Handler
}

// New reads the templates and texts and starts nothing.
func New(rooms Rooms, opts Options) (*Dashboard, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.SessionIdle == 0 {
		opts.SessionIdle = 12 * time.Hour
	}
	if opts.LowBalanceEvery == 0 {
		opts.LowBalanceEvery = lowBalanceEvery
	}
	opts.PublicURL = strings.TrimRight(opts.PublicURL, "/")
	d := &Dashboard{opts: opts, log: opts.Log, rooms: rooms, seen: newMetrics(opts.Metrics), forged: http.NewCrossOriginProtection(),
		counter: messages.New(rooms.Pool), uploads: make(chan struct{}, uploadsAtOnce), decided: make(chan struct{}, 1)}
	d.board, d.streams = newBoard(d), newStreams()
	var err error
	if d.words, err = words.Load(); err != nil {
		return nil, fmt.Errorf("reading the texts: %w", err)
	}
	if d.assets, err = newAssets(); err != nil {
		return nil, fmt.Errorf("reading the assets: %w", err)
	}
	if d.pages, err = newPages(d.assets); err != nil {
		return nil, fmt.Errorf("reading the pages: %w", err)
	}
	if d.handler, err = d.routes(); err != nil {
		return nil, err
	}
	return d, nil
}

// ServeHTTP answers a request; HEAD as GET, of whose body net/http sends nothing.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		r = r.Clone(r.Context())
		r.Method = http.MethodGet
	}
	d.handler.ServeHTTP(w, r)
}

const sweepEvery = time.Hour

// Run deletes what has ended, writes to owners what was decided, whose endpoints have begun to fail for good and whose
// balances are low, and counts messages for the charts, until ctx ends.
func (d *Dashboard) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	loops.Go(func() { d.runSweep(ctx) })
	loops.Go(func() { d.tellFailing(ctx) })
	loops.Go(func() { d.runLowBalance(ctx) })
	loops.Go(func() { d.runTally(ctx) })
	loops.Go(func() { d.runLetters(ctx) })
	loops.Wait()
	return nil
}

// runSweep deletes ended sessions, links and campaigns that were not sent.
func (d *Dashboard) runSweep(ctx context.Context) {
	every(ctx, sweepEvery, func() {
		if err := errors.Join(d.rooms.Accounts.Sweep(ctx, d.opts.SessionIdle), d.sweepDrafts(ctx)); err != nil && ctx.Err() == nil {
			d.log.Warn("ended sessions and mailed links could not be deleted", "error", err)
		}
	})
}
