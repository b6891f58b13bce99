package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"intumwa/accounts/companies"
	"intumwa/accounts/keys"
	"intumwa/accounts/people"
	"intumwa/accounts/senders"
	"intumwa/accounts/testnumbers"
	"intumwa/api"
	"intumwa/billing"
	"intumwa/billing/ebms"
	"intumwa/billing/orders"
	"intumwa/campaigns"
	"intumwa/configs"
	"intumwa/contacts"
	"intumwa/dashboard"
	"intumwa/dispatcher"
	"intumwa/dispatcher/settling"
	"intumwa/inbound/answers"
	"intumwa/inbound/handsets"
	"intumwa/inbound/switchboard"
	"intumwa/intake"
	"intumwa/internal/audit"
	"intumwa/internal/letters"
	"intumwa/internal/notices"
	"intumwa/internal/postgres"
	"intumwa/internal/queue"
	"intumwa/internal/throttle"
	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/messages/statistics"
	"intumwa/operations"
	"intumwa/reports/exports"
	"intumwa/smppserver"
	"intumwa/smppserver/binds"
	"intumwa/sms"
	"intumwa/verifications"
	"intumwa/webhooks"
)

type serveCmd struct {
	Roles     []string `help:"Which parts to serve. Default: all." placeholder:"ROLE" enum:"api,dispatcher,webhooks,dashboard,smpp"`
	NoMigrate bool     `help:"Do not bring the database's schema up to date first."`
}

// failedLogins is how many wrong tokens an address may send in a minute.
const failedLogins = 120

// Run serves until ctx ends. It then takes no more requests, finishes the work in
// progress, unbinds from the carriers, and returns within 10 s.
func (s *serveCmd) Run(ctx context.Context, p *program) error {
	// Registered first: an unhandled SIGHUP ends the process. An early one waits for the
	// reloader.
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	if len(s.Roles) == 0 {
		s.Roles = configs.Roles
	}
	config, err := p.checkedConfig(s.Roles...)
	if err != nil {
		return err
	}
	log := slog.New(newRepeats(newLog(p.stderr, config.Log).Handler()))
	redisLog.to.Store(log)
	defer redisLog.to.CompareAndSwap(log, nil)
	slog.SetLogLoggerLevel(slog.LevelDebug) // for libraries' own lines, which peers can provoke
	slog.SetDefault(log)
	tuneCollector(os.Getenv)
	g := &gateway{program: p, config: config, log: log, roles: s.Roles, registry: prometheus.NewRegistry(),
		hangups: hangups}
	if !s.NoMigrate {
		if _, err := postgres.Migrate(ctx, string(config.Database.URL)); err != nil {
			return fmt.Errorf("migrating the database: %w", err)
		}
	}
	if err := g.serve(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	log.Info("ended", "event", "ended", "roles", strings.Join(s.Roles, ","))
	return nil
}

// memoryLimit is a soft limit of the Go runtime. The gateway needs some tens of megabytes, and less
// than 160 under every recorded attack, so the collector may run rarely (300 %); near the limit it
// runs more often. GOGC and GOMEMLIMIT in the environment override both.
const memoryLimit = 256 << 20

func tuneCollector(getenv func(string) string) {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(300)
	}
	if getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
}

// gateway is one process with its roles.
type gateway struct {
	program  *program
	config   *configs.Config
	log      *slog.Logger
	roles    []string
	registry registry
	hangups  <-chan os.Signal // each reloads the configuration; may be nil
}

func (g *gateway) has(role string) bool { return slices.Contains(g.roles, role) }

// serve wires the roles together and runs them until ctx ends.
func (g *gateway) serve(ctx context.Context) error {
	c := g.config
	g.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		buildInfo())

	life := newLife(ctx)
	defer life.abandonLate(g.log)() // runs last: closing a pool can hang as well
	where, primary := string(c.Database.URL), postgres.NewPrimary(g.log)
	primary.Look(ctx, where)
	db, err := openPools(ctx, &c.Database, primary)
	if err != nil {
		return fmt.Errorf("opening the database: %w", err)
	}
	defer db.close()
	pool, hot, lookups := db.general, db.batch, db.lookups
	// Not ready on an older schema. A newer one is fine.
	if err := postgres.Current(ctx, pool); err != nil && !errors.Is(err, postgres.ErrSchemaNewer) {
		return err
	}
	if err := postgres.ReadClock(ctx, db.probing); err != nil {
		return err
	}
	g.registry.MustRegister(slices.Concat(poolGauges(pool, "general"), poolGauges(hot, "batch"),
		poolGauges(lookups, "lookups"))...)

	links := 0
	for i := range c.Carriers {
		links += len(c.Carriers[i].Links)
	}
	rdb, waiting, err := openRedis(&c.Redis, links)
	if err != nil {
		return fmt.Errorf("opening redis: %w", err)
	}
	defer func() { _ = errors.Join(rdb.Close(), waiting.Close()) }()

	q := queue.New(rdb, queue.Options{Prefix: c.Redis.Prefix, Waiting: waiting})
	if err := refuseEvicting(ctx, q); err != nil {
		return err
	}
	key, err := c.Key()
	if err != nil {
		return fmt.Errorf("encryption_key: %w", err)
	}
	holders := keys.NewHolders(pool, keys.Options{Key: []byte(c.Accounts.OTPKey), Log: g.log, Metrics: g.registry})
	users, customers, names := people.New(pool), companies.New(pool, holders.Forget),
		senders.New(pool, c.TestSender, holders.Forget)
	testNumbers := testnumbers.New(pool, testnumbers.Options{Key: []byte(c.Accounts.OTPKey), Forget: holders.Forget,
		FreeCodes: c.Accounts.TestCodesADay, Metrics: g.registry})
	hooks := webhooks.New(hot, webhooks.Options{Timeout: c.Webhooks.Timeout, RetryDelays: c.Webhooks.RetryDelays,
		AllowPrivate: c.Webhooks.AllowPrivate, SecretKey: key,
		Retention: c.Retention.Deliveries, Lookups: lookups, History: outcomesOf(lookup.New(lookups)),
		Name: namesOf(lookup.New(pool)), Facts: carrierFacts(lookup.New(lookups)), Log: g.log, Metrics: g.registry})
	routes, err := routesOf(c)
	if err != nil {
		return err
	}
	quiet, err := sms.ParseQuietHours(c.Messages.QuietHours)
	if err != nil {
		return fmt.Errorf("messages.quiet_hours: %w", err)
	}
	store := messages.New(hot)
	repeats := throttle.NewRepeats(rdb, throttle.RepeatOptions{Prefix: c.Redis.Prefix, Key: []byte(c.Accounts.OTPKey),
		Now: postgres.Now, Log: g.log, Metrics: g.registry})
	verified := verifications.New(hot, []byte(c.Accounts.OTPKey))
	in := intake.New(hot, holders, testNumbers, store, q, routes,
		intake.Options{Verifications: verified, Events: hooks.Enqueue,
			VerificationRate: throttle.New(rdb, throttle.Options{Prefix: c.Redis.Prefix + ":verifications",
				Limit: c.Accounts.VerificationsAnHour, Window: time.Hour, Log: g.log}),
			Repeats: repeats, Validity: c.Messages.Validity, QuietHours: quiet, KeyLife: c.Retention.IdempotencyKeys,
			MaxSegments: c.Messages.MaxSegments, TestSender: c.TestSender, TestQuota: c.Accounts.TestQuota, Log: g.log,
			Metrics: g.registry})
	if err := in.ReadRetired(ctx); err != nil {
		return err
	}

	answering := answers.New(answers.Deps{Pool: pool, Companies: customers, Holders: holders, Intake: in, Log: g.log,
		Metrics: g.registry})

	defer life.end()

	listener := notices.New(db.general, notices.Options{Log: g.log, Metrics: g.registry})
	listener.On(notices.Account, holders.ForgetUser)
	listener.On(notices.Company, holders.ForgetCompany)
	listener.On(notices.Endpoint, hooks.EndpointChanged)
	listener.On(notices.Carrier, in.CarrierRetired)
	plan := planOf(c)
	reload := (&reloader{hangups: g.hangups, program: g.program, roles: g.roles, log: g.log, inForce: c, intake: in,
		plan: plan}).measured(g.registry)
	watched := newStores(db.probing, q, g.log, g.registry)
	ops := newOps(pool, watched.commits, g.registry, g.log)
	watched.look, watched.standby = func(ctx context.Context) { primary.Look(ctx, where) }, c.Database.RequireStandby
	watched.archive = c.Database.RequireArchive
	ops.standby = c.Database.RequireStandby
	watched.probeDatabase(ctx, 0) // before the process reports ready
	life.run("stores", watched.Run)
	if g.has("dispatcher") {
		options := dispatcherOptions(c, g.log, g.registry)
		options.Route = in.Route
		board := switchboard.New(hot, customers, names, hooks, switchboardOptions(c, in.Route, q, answering.Kick, g.log,
			g.registry))
		options.Inbound = board.Kick
		options.QuietHours, options.QuietCompanies = quiet, customers.QuietHours
		d, err := dispatcher.New(pool, hot, q, hooks, options)
		if err != nil {
			return err
		}
		life.run("dispatcher", d.Run)
		life.run("switchboard", board.Run)
		life.run("sandbox", settling.NewSandbox(hot, hooks, g.log, g.registry).Run)
		listener.On(notices.Link, d.LinkChanged)
		listener.On(notices.Carrier, d.LinkChanged)
		reload.dispatcher = d
		ops.HandleFunc("GET /debug/links/{name}/trace", traceLink(d.Trace, g.log))
		life.run("unusual", newWatch(statistics.New(pool), g.log, g.registry).Run)
		life.run("ledger check", newLedgerCheck(billing.New(pool), g.log, g.registry).Run)
	}
	sends := throttle.New(rdb, throttle.Options{Prefix: c.Redis.Prefix, Limit: c.API.RateLimitPerMinute, Log: g.log,
		Metrics: g.registry})
	cancel := func(ctx context.Context, of messages.Queued) (cancelled, credits int64, err error) {
		done, err := settling.Cancel(ctx, hot, store, hooks, of, nil)
		return done.Cancelled, done.Credits, err
	}
	var handler http.Handler
	bindable := g.has("smpp") && c.SMPPServer.Listen != ""
	if g.has("api") || g.has("dashboard") || g.has("webhooks") || bindable { // the webhooks' processes send campaigns
		life.run("intake", in.Run)
		life.run("accounts", holders.Run)
	}
	if bindable {
		if err := g.serveSMPP(ctx, life, rdb, smppserver.Deps{Holders: holders, Intake: in, Messages: messages.New(lookups),
			Lookup: lookup.New(lookups), Binds: binds.New(pool), Cancel: cancel}, plan, listener, ops); err != nil {
			return err
		}
	}
	if g.has("api") || g.has("dashboard") { // the dashboard runs an example with a new key
		deps := api.Deps{Holders: holders, People: users, Companies: customers, TestNumbers: testNumbers, Intake: in,
			Messages: messages.New(lookups), Lookup: lookup.New(lookups), Statistics: statistics.New(lookups),
			Handsets: handsets.New(lookups), Ledger: billing.New(lookups), Webhooks: hooks, Throttle: sends,
			Verifications: verifications.New(lookups, []byte(c.Accounts.OTPKey)), Cancel: cancel,
			Contacts: contacts.New(lookups).Changing(pool), By: func(user int64) api.Acts {
				return operations.By(audit.User(user), nil, operations.Deps{Pool: pool})
			}}
		if handler, err = api.New(deps, api.Options{Plan: plan, DashboardURL: c.Dashboard.PublicURL,
			DocsNotice: c.API.DocsNotice, TestSender: c.TestSender, TestQuota: c.Accounts.TestQuota,
			StopWords: c.Inbound.StopWords, StartWords: c.Inbound.StartWords, Validity: c.Messages.Validity,
			RetryDelays: c.Webhooks.RetryDelays, WebhookTimeout: c.Webhooks.Timeout,
			SMPP: smppOf(c), Refund: refunds[c.Billing.Refund],
			Lookups: lookupConnections(), TrustedProxies: c.API.TrustedProxies,
			FailedLogins: throttle.New(rdb, throttle.Options{Prefix: c.Redis.Prefix + ":logins", Limit: failedLogins,
				Log: g.log}),
			Log: g.log, Metrics: g.registry}); err != nil {
			return fmt.Errorf("api: %w", err)
		}
	}
	if g.has("api") {
		server := newServer(handler)
		server.RegisterOnShutdown(hooks.EndWaits)
		if err := life.listen(ctx, "api", c.API.Listen, newBounds("api", c.API.TrustedProxies, g.log, g.registry),
			server); err != nil {
			return err
		}
	}
	if g.has("api") && c.Kannel.Listen != "" {
		if err := g.serveKannel(ctx, life, handler, hooks); err != nil {
			return err
		}
	}
	sending := campaigns.New(campaigns.Deps{Pool: pool, Holders: holders, People: users, Ledger: billing.New(pool),
		Intake: in, Plan: plan, Log: g.log})
	imports := contacts.NewImports(pool, plan, g.log)
	files, err := exports.New(pool, shorter(c.Retention.Bodies, c.Retention.Messages), g.log)
	if err != nil {
		return fmt.Errorf("exports: %w", err)
	}
	mailer, err := g.newMailer()
	if err != nil {
		return err
	}
	var office *ebms.Client
	if g.has("webhooks") || g.has("dashboard") {
		if office, err = taxOffice(&c.EBMS); err != nil {
			return err
		}
	}
	sales := orders.New(pool, c.Sales())
	if g.has("webhooks") && office != nil {
		life.run("tax office", g.reporter(pool, office, sales).Run)
	}
	if g.has("webhooks") {
		post, err := letters.New(pool, users, customers, names, mailer, publicURL(&c.Dashboard), c.Operator.Email, g.log)
		if err != nil {
			return err
		}
		listener.On(notices.Company, post.Wake)
		life.run("webhooks", hooks.Run)
		life.run("letters", post.Run)
		life.run("verifications", in.RunVerifications)
		life.run("campaigns", sending.Run)
		life.run("answers", answering.Run)
		life.run("contacts", imports.Run)
		life.run("exports", files.Run)
		life.run("tallies", func(ctx context.Context) error { return statistics.New(pool).RunTallies(ctx, g.log) })
	}
	if g.has("dashboard") {
		life.run("mail", mailer.Run)
		if err := g.serveDashboard(ctx, life, rdb, dashboard.Deps{People: users, SignIn: people.NewSignIn(pool, key),
			Sessions:  people.NewSessions(pool),
			Companies: customers, Keys: keys.New(pool, []byte(c.Accounts.OTPKey), holders), Holders: holders, Senders: names,
			TestNumbers: testNumbers, Pool: pool, Campaigns: sending, Exports: files, Mailer: mailer, Ledger: billing.New(pool),
			Intake: in, Contacts: contacts.New(lookups), Imports: imports,
			Messages: messages.New(lookups), Lookup: lookup.New(lookups), Statistics: statistics.New(lookups),
			Handsets:      handsets.New(lookups),
			Verifications: verifications.New(lookups, []byte(c.Accounts.OTPKey)),
			Statements:    billing.New(lookups), TaxOffice: office, Orders: sales, Webhooks: hooks, Sends: sends,
			Many: hot, API: handler}, plan); err != nil {
			return err
		}
	}
	life.run("retired carriers", in.FollowRetired)
	life.run("notices", listener.Run)
	life.run("reload", reload.Run)
	if err := life.listen(ctx, "ops", c.Ops.Listen, nil,
		&http.Server{Handler: readOnlyBy(c.Ops.Readers(), ops), ReadHeaderTimeout: 5 * time.Second,
			WriteTimeout: 30 * time.Second}); err != nil {
		return err
	}
	for _, warning := range c.Warnings(g.roles...) {
		g.log.Warn("configuration warning", "event", "configuration_warning", "warning", warning.String())
	}
	ops.serving.Store(true)
	listeners := []any{"roles", strings.Join(g.roles, ",")}
	for _, l := range [][3]string{{"api", "api", c.API.Listen}, {"dashboard", "dashboard", c.Dashboard.Listen},
		{"api", "kannel", c.Kannel.Listen}, {"smpp", "smpp", c.SMPPServer.Listen}} {
		if g.has(l[0]) && l[2] != "" {
			listeners = append(listeners, l[1], l[2])
		}
	}
	g.log.Info("ready", slices.Concat([]any{"event", "ready"}, listeners,
		[]any{"ops", c.Ops.Listen, "version", version})...)
	err = life.wait()
	if err == nil {
		g.log.Info("shutting down: nothing new is taken, work in progress is finished", "event", "shutting_down", "roles",
			strings.Join(g.roles, ","))
	}
	ops.serving.Store(false)
	return err
}

// Limits of untrusted attempts at the dashboard in triesWindow, per account and per network address. Many people may
// share an address.
const (
	triesWindow      = 15 * time.Minute
	triesOfAccount   = 10
	triesOfAddress   = 100
	testsOfCompany   = 30  // test events to one company's endpoint
	changesOfUser    = 300 // kept in the audit log permanently; a person makes far fewer
	mailsOfAddress   = 5   // links to one e-mail address, in mailsWindow
	mailsWindow      = time.Hour
	signUpsOfAddress = 50  // in codesWindow
	codesOfUser      = 100 // second factors, in codesWindow: ten in triesWindow would be a thousand a day
	codesWindow      = 24 * time.Hour

	papersOfCompany = 20 // documents of up to 5 MiB in codesWindow; only the latest is kept
)

// newServer serves a public listener. Its timeouts end connections with slow headers or bodies. Its idle timeout
// exceeds a proxy's, so the proxy closes first.
func newServer(handler http.Handler) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: 30 * time.Second,
		IdleTimeout:  time.Minute, MaxHeaderBytes: 16 << 10}
}

// newLog makes the process's log. It escapes terminal control characters: the text
// handler quotes them, plainJSON escapes the rest.
func newLog(w io.Writer, c configs.Log) *slog.Logger {
	options := &slog.HandlerOptions{Level: logLevels[c.Level]}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(plainJSON{w}, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

var logLevels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn,
	"error": slog.LevelError}

// shorter returns the shorter of two retentions; 0 is forever.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// lookupConnections is the number of connections for customers' look-ups, and so of concurrent look-ups: one per CPU,
// at least two.
func lookupConnections() int { return max(2, runtime.GOMAXPROCS(0)) }

// planOf is the national numbering plan with the carriers' prefixes.
func planOf(c *configs.Config) *sms.Plan {
	var prefixes []string
	for _, carrier := range c.Carriers {
		prefixes = append(prefixes, carrier.Prefixes...)
	}
	return sms.NewPlan(prefixes...)
}

func routesOf(c *configs.Config) (*sms.Routes, error) {
	routes := make([]sms.Route, len(c.Carriers))
	for i, carrier := range c.Carriers {
		routes[i] = sms.Route{Carrier: carrier.Name, Prefixes: carrier.Prefixes, Default: carrier.Default,
			Registration: registrations[carrier.SenderRegistration]}
	}
	table, err := sms.NewRoutes(routes)
	if err != nil {
		return nil, fmt.Errorf("carriers: %w", err)
	}
	return table, nil
}

// namesOf looks up messages' ULIDs for the log.
func namesOf(store *lookup.Store) func(context.Context, int64) string {
	return func(ctx context.Context, id int64) string {
		names, err := store.ULIDs(ctx, []int64{id})
		if name, known := names[id]; err == nil && known {
			return name.String()
		}
		return ""
	}
}
