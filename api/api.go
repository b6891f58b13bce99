// Package api is the public HTTP API: request and response shapes, validation
// texts (422), status codes, and the documents that describe them. Which requests
// are allowed is decided by intake; this package translates its decisions to JSON.
//
// Order of checks (rule choices 1.1): 401 token → 403 its limits → 429 rate →
// 413 body → 415 Content-Type → 400 malformed JSON → 422 validation → 400 business rules.
// 404 and 405 come before all of them.
package api

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"intumwa/accounts/companies"
	"intumwa/accounts/keys"
	"intumwa/accounts/people"
	"intumwa/accounts/testnumbers"
	"intumwa/billing"
	"intumwa/contacts"
	"intumwa/dispatcher/setup"
	"intumwa/inbound/handsets"
	"intumwa/intake"
	"intumwa/internal/throttle"
	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/messages/statistics"
	"intumwa/sms"
	"intumwa/verifications"
	"intumwa/webhooks"
)

// Options configures the API.
type Options struct {
	Plan         *sms.Plan // valid numbers
	TestSender   string
	TestQuota    int           // segments an account, rule api 4.4.5
	DashboardURL string        // where users create companies and tokens; "": the documents do not link to it
	DocsNotice   string        // for the reference, from the operator
	Replacements int           // how often a verified test number may be replaced
	StopWords    []string      // for the documents: words by which handsets opt out
	StartWords   []string      // and in again
	Validity     time.Duration // for the documents: how long a message without expire_at is tried
	Refund       setup.Refund  // for the documents: which failed messages are refunded
	// for the documents: pauses between attempts of a webhook; default those of rule api 6
	RetryDelays    []time.Duration
	WebhookTimeout time.Duration // for the documents: of an attempt, default 10 s
	SMPP           SMPP          // for the documents: the server for customers' programs
	MaxBody        int64         // bytes of a body; default 16 MiB
	// bytes of all bodies and large responses in memory, more than twice MaxBody; default 64 MiB
	BodyMemory     int64
	Lookups        int                // concurrent database look-ups; default 4
	LookupsPerUser int                // of these, for one user; default 2
	TrustedProxies []string           // whose X-Forwarded-For is trusted
	FailedLogins   *throttle.Throttle // by address; nil: not limited
	Log            *slog.Logger
	Metrics        prometheus.Registerer
}

// Deps are the packages that the API calls. The stores and Ledger serve look-ups
// (and the opt-out list): give them a separate connection pool, not the one for sends.
type Deps struct {
	Holders     *keys.Holders
	People      *people.Store
	Companies   *companies.Store
	TestNumbers *testnumbers.Store
	Throttle    *throttle.Throttle
	Intake      *intake.Intake
	Messages    *messages.Store
	Lookup      *lookup.Store
	Statistics  *statistics.Store
	Handsets    *handsets.Store
	Ledger      *billing.Ledger
	Webhooks    *webhooks.Webhooks

	Verifications *verifications.Store
	Contacts      *contacts.Store

	// By returns a user who performs acts (operations.Actor).
	By func(user int64) Acts

	// Cancel cancels messages that no carrier has and returns how many messages and credits those were
	// (settling.Cancel).
	Cancel func(context.Context, messages.Queued) (cancelled, credits int64, err error)
}

// Acts are what a user does that the audit log records.
type Acts interface {
	DeleteContacts(ctx context.Context, company int64, which contacts.Selection) (deleted int, err error)
	DeleteGroup(ctx context.Context, company, id int64) (contacts.Group, error)
}

// API serves the public endpoints.
type API struct {
	Deps

	opts    Options
	memory  *memory
	lookups *throttle.Turns // of a user, at the database
	waits   waits
	metrics *metrics

	suspectLookups perSecond // look-ups of unknown tokens from addresses with too many failures, see authenticate

	unavailableLogged  atomic.Int64 // Unix second of the last log line about a database outage
	unauthorizedLogged atomic.Int64 // Unix second of the last log line about an unauthorized request
}

// New returns the API's handler. It starts nothing.
func New(deps Deps, opts Options) (http.Handler, error) {
	opts.MaxBody = cmp.Or(opts.MaxBody, 16<<20)
	opts.BodyMemory = cmp.Or(opts.BodyMemory, 64<<20)
	opts.Lookups = cmp.Or(opts.Lookups, 4)
	opts.LookupsPerUser = cmp.Or(opts.LookupsPerUser, 2)
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	m := newMetrics(opts.Metrics)
	a := &API{Deps: deps, opts: opts, memory: newMemory(opts.BodyMemory, m), metrics: m,
		lookups: throttle.NewTurns(opts.Lookups, opts.LookupsPerUser), waits: newWaits(),
		suspectLookups: perSecond{most: suspectLookupsPerSecond}}
	return a.routes()
}

// recover turns a panic into a 500 response without details, and logs it.
func (a *API) recover(c *gin.Context) {
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler { //nolint:errorlint // the sentinel of net/http, compared as net/http does
				panic(p)
			}
			a.log(c).Error("panic in a handler", "event", "handler_panicked", "method", c.Request.Method, "route", c.FullPath(),
				"panic", p, "stack", string(debug.Stack()))
			if !c.Writer.Written() {
				writeRefusal(c, serverError)
			}
		}
	}()
	c.Next()
}

// observe records metrics and a debug log line for each request.
func (a *API) observe(c *gin.Context) {
	start := time.Now()
	a.metrics.inFlight.Inc()
	defer a.metrics.inFlight.Dec()
	c.Next()
	took := time.Since(start) - c.GetDuration(waitedKey)
	a.metrics.request(c.FullPath(), c.Request.Method, c.Writer.Status(), took)
	if ctx := c.Request.Context(); a.opts.Log.Enabled(ctx, slog.LevelDebug) {
		a.log(c).DebugContext(ctx, "request answered", "method", c.Request.Method, "route", c.FullPath(), "status",
			c.Writer.Status(),
			"code", c.Writer.Header().Get("X-Error-Code"), "duration", took)
	}
}
