package dashboard

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"intumwa/accounts"
	"intumwa/accounts/companies"
	"intumwa/accounts/keys"
	"intumwa/accounts/people"
	"intumwa/accounts/senders"
	"intumwa/accounts/testnumbers"
	"intumwa/billing"
	"intumwa/billing/ebms"
	"intumwa/billing/orders"
	"intumwa/campaigns"
	"intumwa/contacts"
	"intumwa/dashboard/administration"
	contactpages "intumwa/dashboard/contacts"
	"intumwa/dashboard/develop"
	"intumwa/dashboard/following"
	"intumwa/dashboard/inbound"
	"intumwa/dashboard/money"
	"intumwa/dashboard/numberfile"
	"intumwa/dashboard/sending"
	"intumwa/dashboard/settings"
	"intumwa/dashboard/signin"
	"intumwa/dashboard/web"
	"intumwa/dispatcher/setup"
	"intumwa/inbound/handsets"
	"intumwa/intake"
	"intumwa/internal/mail"
	"intumwa/internal/throttle"
	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/messages/statistics"
	"intumwa/operations"
	"intumwa/reports/exports"
	"intumwa/sms"
	"intumwa/texts"
	"intumwa/verifications"
	"intumwa/webhooks"
)

// Options of [New].
type Options struct {
	PublicURL      string        // the address of the dashboard, for links in mails: https://sms.example.com
	DocsURL        string        // of the API's reference; empty: no link to it
	CreditsNotice  string        // how customers get credits, from the operator
	Operator       web.Operator  // who runs the installation
	APIURL         string        // {base_url} of the API, for examples: https://sms.example.com/v1
	TrustedProxies []string      // whose X-Forwarded-For is trusted
	SecureCookies  bool          // HTTPS only
	SessionIdle    time.Duration // an unused session ends; 12 h if 0
	AdminTOTP      bool          // the administrator scope requires the second factor instead of the password
	Plan           *sms.Plan     // valid numbers
	TestSender     string
	TestQuota      int // test segments an account
	AtOnce         int // concurrent requests at the database; 8 if 0
	// of those, per user, or per network address without a session; if 0, 4, at most half of AtOnce
	AtOnceOfOne int
	Refund      setup.Refund // which failed messages are refunded
	SMPP        bool         // customers can bind by SMPP: there are pages about it
	Log         *slog.Logger
	Metrics     prometheus.Registerer // nil: not registered
}

// Deps are the packages that the dashboard calls.
type Deps struct {
	Pool        *pgxpool.Pool // for transactions over several packages
	People      *people.Store
	SignIn      *people.SignIn
	Sessions    *people.Sessions
	Companies   *companies.Store
	Keys        *keys.Store
	Holders     *keys.Holders
	Senders     *senders.Store
	TestNumbers *testnumbers.Store
	Ledger      *billing.Ledger
	Intake      *intake.Intake
	Campaigns   *campaigns.Campaigns
	Contacts    *contacts.Store
	Imports     *contacts.Imports
	Exports     *exports.Exports
	Messages    *messages.Store   // for look-ups only: on a pool of its own, not the one for sends
	Lookup      *lookup.Store     // on the pool of Messages
	Statistics  *statistics.Store // likewise
	Handsets    *handsets.Store   // for look-ups only, like Messages
	Webhooks    *webhooks.Webhooks

	Verifications *verifications.Store // for look-ups only, like Messages
	Orders        *orders.Store

	TaxOffice *ebms.Client // the eBMS of the OBR; nil: it is not told of invoices

	Sends  *throttle.Throttle // sends per user and minute, pages and API together; nil: no limit
	Mailer *mail.Mailer
	Tries  Tries
	API    http.Handler // runs the example of a new key

	Statements *billing.Ledger // for long statements: on the pool of Messages
	Many       *pgxpool.Pool   // for statements over many messages: with BatchUpdates
}

// Tries limits tries, mostly without a session: per quarter of an hour where nothing else is said. Nil: no limit.
type Tries struct {
	Account  *throttle.Throttle // wrong passwords of one account; wrong codes of one user
	Address  *throttle.Throttle // all of these, and links, per network address
	Codes    *throttle.Throttle // wrong codes of one user's second factor, in a day
	Mails    *throttle.Throttle // links per mail address and hour
	SignUps  *throttle.Throttle // links for signing up, per network address and day
	Warnings *throttle.Throttle // mails to one user about wrong passwords, per day
	Tests    *throttle.Throttle // test events to one company's endpoint
	Changes  *throttle.Throttle // changes by one user; the audit log keeps them permanently
	Papers   *throttle.Throttle // uploaded documents of one company, in a day
}

// Dashboard serves the pages.
type Dashboard struct {
	opts       Options
	log        *slog.Logger
	deps       Deps
	operations operations.Deps
	words      *texts.Texts
	assets     assets
	site       *web.Site

	signin         signin.Pages
	settings       settings.Pages
	develop        develop.Pages
	money          money.Pages
	sending        sending.Pages
	following      following.Pages
	inbound        inbound.Pages
	contacts       contactpages.Pages
	administration administration.Pages
}

// New reads the templates and texts. Run starts the background work.
func New(deps Deps, opts Options) (*Dashboard, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.SessionIdle == 0 {
		opts.SessionIdle = 12 * time.Hour
	}
	opts.PublicURL, opts.DocsURL = strings.TrimRight(opts.PublicURL, "/"), strings.TrimRight(opts.DocsURL, "/")
	d := &Dashboard{opts: opts, log: opts.Log, deps: deps, operations: operations.Deps{Pool: deps.Pool, Many: deps.Many,
		People: deps.People, SignIn: deps.SignIn,
		Companies: deps.Companies, Keys: deps.Keys, Senders: deps.Senders, TestNumbers: deps.TestNumbers,
		Webhooks: deps.Webhooks, Handsets: deps.Handsets, Orders: deps.Orders}}
	var err error
	if d.words, err = texts.Load(); err != nil {
		return nil, fmt.Errorf("reading the texts: %w", err)
	}
	if d.assets, err = allAssets(); err != nil {
		return nil, fmt.Errorf("reading the assets: %w", err)
	}
	if d.site, err = web.New(web.Options{DocsURL: opts.DocsURL, CreditsNotice: opts.CreditsNotice,
		TrustedProxies: opts.TrustedProxies, SecureCookies: opts.SecureCookies,
		SessionIdle: opts.SessionIdle, SMPP: opts.SMPP, AtOnce: opts.AtOnce, AtOnceOfOne: opts.AtOnceOfOne, Words: d.words,
		Log: opts.Log, Metrics: opts.Metrics,
		Uploads: map[string]web.Upload{"POST /campaigns": numberfile.Upload,
			"POST /contacts/import":  numberfile.Upload,
			"POST /orders/:id/slip":  web.DocumentUpload,
			"POST /company/document": web.DocumentUpload, "POST /admin/registrations/:id/document": web.DocumentUpload},
		Missing: []error{accounts.ErrNotFound, messages.ErrNotFound, webhooks.ErrNotFound, campaigns.ErrNotFound,
			contacts.ErrNotFound, contacts.ErrNoGroup, contacts.ErrNoImport,
			exports.ErrNotFound, verifications.ErrNotFound},
		Templates: pages, Nav: d.nav, Sessions: deps.Sessions, Balance: deps.Ledger.Balance}); err != nil {
		return nil, err
	}
	d.wire()
	d.routes()
	return d, nil
}

// ServeHTTP handles a request.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) { d.site.ServeHTTP(w, r) }

const sweepEvery = time.Hour

// Run deletes ended sessions and mailed links until ctx ends.
func (d *Dashboard) Run(ctx context.Context) error {
	for {
		if err := d.deps.Sessions.Sweep(ctx, d.opts.SessionIdle); err != nil && ctx.Err() == nil {
			d.log.Warn("ended sessions and mailed links could not be deleted", "event", "sessions_not_deleted", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(sweepEvery):
		}
	}
}
