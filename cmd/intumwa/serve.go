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
	"github.com/redis/go-redis/v9"

	"intumwa/accounts"
	"intumwa/api"
	"intumwa/billing"
	"intumwa/configs"
	"intumwa/dashboard"
	"intumwa/dispatcher"
	"intumwa/inbound/handsets"
	"intumwa/inbound/switchboard"
	"intumwa/intake"
	"intumwa/internal/mail"
	"intumwa/internal/notices"
	"intumwa/internal/postgres"
	"intumwa/internal/throttle"
	"intumwa/messages"
	"intumwa/queue"
	"intumwa/smpp"
	"intumwa/sms"
	"intumwa/webhooks"
)

type serveCmd struct {
	Roles     []string `help:"Which parts to serve: api, dispatcher, webhooks, dashboard. All when not given." placeholder:"ROLE" enum:"api,dispatcher,webhooks,dashboard"`
	NoMigrate bool     `help:"Do not bring the database's schema up to date first."`
}

// failedLogins is how many wrong tokens an address may show in a minute before
// it is told to wait.
const failedLogins = 120

// Run serves until ctx ends: then it takes no more requests, finishes what is
// in hand, unbinds from the carriers, and returns within 10 s.
func (s *serveCmd) Run(ctx context.Context, p *program) error {
	// First of all: a SIGHUP that nobody has asked for ends the process. One that
	// comes before the reloader is there waits for it.
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
	slog.SetLogLoggerLevel(slog.LevelDebug) // what libraries say without being asked, which peers can make them do
	slog.SetDefault(log)
	tuneCollector(os.Getenv)
	g := &gateway{program: p, config: config, log: log, roles: s.Roles, registry: prometheus.NewRegistry(), hangups: hangups}
	if !s.NoMigrate {
		if err := postgres.Migrate(ctx, string(config.Database.Whole())); err != nil {
			return fmt.Errorf("migrating the database: %w", err)
		}
	}
	if err := g.serve(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	log.Info("ended", "roles", strings.Join(s.Roles, ","))
	return nil
}

// memoryLimit is what the Go runtime stays below. The gateway lives in some tens of megabytes, and in
// less than 160 under every recorded attack, so the collector may run rarely: 400 % of that is
// little, and near the limit it runs more often. GOGC and GOMEMLIMIT in the environment win.
const memoryLimit = 256 << 20

func tuneCollector(getenv func(string) string) {
	if getenv("GOGC") == "" {
		debug.SetGCPercent(400)
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
	hangups  <-chan os.Signal // each asks for a reload; nil: none ever
}

func (g *gateway) has(role string) bool { return slices.Contains(g.roles, role) }

// serve wires the roles together and runs them until ctx ends.
func (g *gateway) serve(ctx context.Context) error {
	c := g.config
	g.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), buildInfo())

	life := newLife(ctx)
	defer life.abandonLate(g.log)() // runs last: closing a pool can hang as well
	where, primary := string(c.Database.Whole()), postgres.NewPrimary(g.log)
	primary.Look(ctx, where)
	db, err := openPools(ctx, &c.Database, primary)
	if err != nil {
		return fmt.Errorf("opening the database: %w", err)
	}
	defer db.close()
	pool, hot, lookups := db.general, db.batch, db.lookups
	// What cannot work does not say that it is ready. A newer release's schema is
	// one that this one works on.
	if err := postgres.Current(ctx, pool); err != nil && !errors.Is(err, postgres.ErrSchemaNewer) {
		return err
	}
	if err := postgres.ReadClock(ctx, db.probing); err != nil {
		return err
	}
	g.registry.MustRegister(slices.Concat(poolGauges(pool, "general"), poolGauges(hot, "batch"), poolGauges(lookups, "lookups"))...)

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
	factorKey, err := c.Accounts.Key()
	if err != nil {
		return fmt.Errorf("accounts.encryption_key: %w", err)
	}
	users := accounts.New(pool, accounts.Options{TestSender: c.TestSender, OTPKey: []byte(c.Accounts.OTPKey), SecretKey: factorKey,
		Replacements: c.Accounts.TestNumberReplacements, Log: g.log, Metrics: g.registry})
	key, err := c.Webhooks.Key()
	if err != nil {
		return fmt.Errorf("webhooks.encryption_key: %w", err)
	}
	hooks := webhooks.New(hot, webhooks.Options{Timeout: c.Webhooks.Timeout, RetryDelays: c.Webhooks.RetryDelays,
		AllowPrivate: c.Webhooks.AllowPrivate, SecretKey: key, InFlight: c.Webhooks.InFlight,
		Retention: c.Retention.Deliveries, Lookups: lookups, Name: namesOf(messages.New(pool)), Log: g.log, Metrics: g.registry})
	routes, err := routesOf(c)
	if err != nil {
		return err
	}
	quiet, err := c.Messages.Quiet()
	if err != nil {
		return fmt.Errorf("messages.quiet_hours: %w", err)
	}
	store := messages.New(hot)
	repeats := throttle.NewRepeats(rdb, throttle.RepeatOptions{Prefix: c.Redis.Prefix, Key: []byte(c.Accounts.OTPKey), Now: postgres.Now, Log: g.log, Metrics: g.registry})
	in := intake.New(hot, users, store, q, routes, intake.Options{Limits: limitsOf(&c.Limits), Repeats: repeats, Validity: c.Messages.Validity, QuietHours: quiet, KeyLife: c.Retention.IdempotencyKeys,
		MaxSegments: c.Messages.MaxSegments, TestSender: c.TestSender, TestQuota: c.Accounts.TestQuota, Log: g.log, Metrics: g.registry})

	defer life.end()

	heard := notices.New(db.general, notices.Options{Log: g.log, Metrics: g.registry})
	heard.On(notices.Account, users.ForgetUser)
	heard.On(notices.Company, users.ForgetCompany)
	heard.On(notices.Endpoint, hooks.EndpointChanged)
	plan := planOf(c)
	reload := (&reloader{hangups: g.hangups, program: g.program, roles: g.roles, log: g.log, inForce: c, intake: in, plan: plan}).measured(g.registry)
	watched := newStores(db.probing, q, g.log, g.registry)
	ops := newOps(pool, watched.commits, g.registry, g.log)
	watched.look, watched.standby = func(ctx context.Context) { primary.Look(ctx, where) }, c.Database.RequireStandby
	ops.standby = c.Database.RequireStandby
	watched.askDatabase(ctx, 0) // before anybody is told that this process is ready
	life.run("stores", watched.Run)
	if g.has("webhooks") {
		life.run("webhooks", hooks.Run)
	}
	if g.has("dispatcher") {
		options := dispatcherOptions(c, g.log, g.registry)
		options.Route = in.Route
		board := switchboard.New(hot, users, hooks, switchboardOptions(c, in.Route, q, g.log, g.registry))
		options.Inbound = board.Kick
		options.QuietHours, options.QuietCompanies = quiet, users.QuietHours
		d, err := dispatcher.New(pool, hot, q, hooks, options)
		if err != nil {
			return err
		}
		life.run("dispatcher", d.Run)
		life.run("switchboard", board.Run)
		life.run("sandbox", dispatcher.NewSandbox(hot, hooks, g.log, g.registry).Run)
		heard.On(notices.Link, d.LinkChanged)
		reload.dispatcher = d
		ops.HandleFunc("GET /debug/links/{name}/trace", traceLink(d, g.log))
		life.run("unusual", newWatch(messages.New(pool), c.Limits.UnusualHour, g.log, g.registry).Run)
		life.run("books", newBooks(billing.New(pool), g.log, g.registry).Run)
	}
	sends := throttle.New(rdb, throttle.Options{Prefix: c.Redis.Prefix, Limit: c.API.RateLimitPerMinute, Log: g.log, Metrics: g.registry})
	if g.has("api") || g.has("dashboard") { // both send
		life.run("intake", in.Run)
	}
	if g.has("api") {
		life.run("accounts", users.Run)
		rooms := api.Rooms{Accounts: users, Intake: in, Messages: messages.New(lookups), Handsets: handsets.New(lookups), Ledger: billing.New(lookups), Webhooks: hooks, Throttle: sends,
			Cancel: func(ctx context.Context, of messages.Queued) (cancelled, credits int64, err error) {
				done, err := dispatcher.Cancel(ctx, hot, store, hooks, of, nil)
				hooks.Kick()
				return done.Cancelled, done.Credits, err
			}}
		handler, err := api.New(rooms, api.Options{Plan: plan, DashboardURL: c.Dashboard.PublicURL, TestSender: c.TestSender, TestQuota: c.Accounts.TestQuota,
			Replacements: c.Accounts.TestNumberReplacements, MaxBody: c.API.MaxBody, BodyMemory: c.API.BodyMemory, Lookups: int(lookupConnections(&c.Database)), LookupsPerUser: c.API.LookupsPerUser,
			TrustedProxies: c.API.TrustedProxies,
			FailedLogins:   throttle.New(rdb, throttle.Options{Prefix: c.Redis.Prefix + ":logins", Limit: failedLogins, Log: g.log}),
			Log:            g.log, Metrics: g.registry})
		if err != nil {
			return fmt.Errorf("api: %w", err)
		}
		if err := life.listen(ctx, "api", c.API.Listen, newBounds("api", c.API.MaxConnections, c.API.MaxConnectionsPerAddress, c.API.TrustedProxies, g.log, g.registry), &http.Server{Handler: handler,
			ReadHeaderTimeout: c.API.ReadHeaderTimeout, ReadTimeout: c.API.ReadTimeout, WriteTimeout: c.API.WriteTimeout,
			IdleTimeout: c.API.IdleTimeout, MaxHeaderBytes: 16 << 10}); err != nil {
			return err
		}
	}
	if g.has("dashboard") {
		if err := g.serveDashboard(ctx, life, rdb, dashboard.Rooms{Pool: pool, Accounts: users, Ledger: billing.New(pool), Intake: in,
			Messages: messages.New(lookups), Handsets: handsets.New(lookups), Statements: billing.New(lookups), Webhooks: hooks, Sends: sends}, plan, heard); err != nil {
			return err
		}
	}
	life.run("notices", heard.Run)
	life.run("reload", reload.Run)
	if err := life.listen(ctx, "ops", c.Ops.ListenFor(g.roles...), nil, &http.Server{Handler: ops, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second}); err != nil {
		return err
	}
	for _, warning := range c.Warnings(g.roles...) {
		g.log.Warn("configuration warning", "warning", warning.String())
	}
	ops.serving.Store(true)
	listeners := []any{"roles", strings.Join(g.roles, ",")}
	for _, l := range [][2]string{{"api", c.API.Listen}, {"dashboard", c.Dashboard.Listen}} {
		if g.has(l[0]) {
			listeners = append(listeners, l[0], l[1])
		}
	}
	g.log.Info("ready", append(listeners, "ops", c.Ops.ListenFor(g.roles...), "version", version)...)
	err = life.wait()
	if err == nil {
		g.log.Info("shutting down: nothing new is taken, work in progress is finished", "roles", strings.Join(g.roles, ","))
	}
	ops.serving.Store(false)
	return err
}

// What a stranger may try at the dashboard in triesWindow: at one account, and from one network address, behind which
// there may be many people.
const (
	triesWindow    = 15 * time.Minute
	triesOfAccount = 10
	triesOfAddress = 100
	testsOfCompany = 30  // test events to one company's endpoint
	changesOfUser  = 300 // that are kept on record for ever; a person makes far fewer
	mailsOfAddress = 5   // links to one address of mail, in mailsWindow
	mailsWindow    = time.Hour
	codesOfUser    = 100 // of a second factor, in codesWindow: ten in triesWindow would be a thousand a day
	codesWindow    = 24 * time.Hour
)

// serveDashboard starts the role dashboard with its rooms, to which it adds the mails and the bounds of tries.
func (g *gateway) serveDashboard(ctx context.Context, life *life, rdb redis.UniversalClient, rooms dashboard.Rooms, plan *sms.Plan, heard *notices.Listener) error {
	c := g.config
	mailer, err := mail.New(mail.Options{Server: string(c.Mail.Server), From: c.Mail.From, Username: c.Mail.Username,
		Password: string(c.Mail.Password), TLS: string(c.Mail.TLS.Is), Log: g.log, Metrics: g.registry})
	if err != nil {
		return fmt.Errorf("mail: %w", err)
	}
	within := func(window time.Duration, name string, limit int) *throttle.Throttle {
		return throttle.New(rdb, throttle.Options{Prefix: c.Redis.Prefix + ":tries:" + name, Limit: limit, Window: window, Log: g.log})
	}
	tries := func(name string, limit int) *throttle.Throttle { return within(triesWindow, name, limit) }
	rooms.Mailer = mailer
	rooms.Tries = dashboard.Tries{Account: tries("account", triesOfAccount), Address: tries("address", triesOfAddress),
		Codes: within(codesWindow, "codes", codesOfUser), Mails: within(mailsWindow, "mails", mailsOfAddress), Tests: tries("webhook-tests", testsOfCompany), Changes: tries("changes", changesOfUser)}
	d, err := dashboard.New(rooms,
		dashboard.Options{PublicURL: publicURL(&c.Dashboard), DocsURL: c.Dashboard.DocsURL, APIURL: apiURL(c), TrustedProxies: c.Dashboard.TrustedProxies,
			Plan: plan, TestSender: c.TestSender, TestQuota: c.Accounts.TestQuota, Replacements: c.Accounts.TestNumberReplacements,
			SecureCookies: c.Dashboard.SecureCookies, SessionIdle: c.Dashboard.SessionIdle, AdminTOTP: c.Dashboard.AdminTOTP,
			AtOnce: int(rooms.Pool.Config().MaxConns+1) / 2, // the other half is for tokens, tasks and heartbeats
			Log:    g.log, Metrics: g.registry})
	if err != nil {
		return fmt.Errorf("dashboard: %w", err)
	}
	heard.On(notices.Company, d.WakeLetters)
	life.run("mail", mailer.Run)
	life.run("dashboard", d.Run)
	limits := newBounds("dashboard", c.API.MaxConnections, c.API.MaxConnectionsPerAddress, c.Dashboard.TrustedProxies, g.log, g.registry)
	server := &http.Server{Handler: d,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	server.RegisterOnShutdown(d.EndStreams)
	return life.listen(ctx, "dashboard", c.Dashboard.Listen, limits, server)
}

// apiURL is {base_url} of the API as examples show it: beside its reference, where that is known.
func apiURL(c *configs.Config) string {
	if base, ok := strings.CutSuffix(strings.TrimRight(c.Dashboard.DocsURL, "/"), "/docs"); ok {
		return base + "/v1"
	}
	return "http://" + c.API.Listen + "/v1"
}

func publicURL(c *configs.Dashboard) string {
	if c.PublicURL != "" {
		return c.PublicURL
	}
	return "http://" + c.Listen
}

// newLog makes the process's log. What a terminal would obey is escaped in it: by
// the text handler, which quotes what it cannot print, and by plainJSON.
func newLog(w io.Writer, c configs.Log) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.Level.Is}
	if c.Format.Is == "json" {
		return slog.New(slog.NewJSONHandler(plainJSON{w}, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// lookupConnections is how many connections look-ups have, and so how many of
// them there are at once: one a CPU and two at least, if nothing else is said.
func lookupConnections(c *configs.Database) int32 {
	if c.LookupConnections > 0 {
		return int32(c.LookupConnections)
	}
	return int32(max(2, runtime.GOMAXPROCS(0)))
}

// planOf is which numbers are valid: the national plan and what carriers list.
func planOf(c *configs.Config) *sms.Plan {
	var prefixes []string
	for _, carrier := range c.Carriers {
		prefixes = append(prefixes, carrier.Prefixes...)
		prefixes = append(prefixes, carrier.NumberOverrides...)
	}
	return sms.NewPlan(prefixes...)
}

func routesOf(c *configs.Config) (*sms.Routes, error) {
	routes := make([]sms.Route, len(c.Carriers))
	for i, carrier := range c.Carriers {
		routes[i] = sms.Route{Carrier: carrier.Name, Prefixes: carrier.Prefixes, Numbers: carrier.NumberOverrides, Default: carrier.Default}
	}
	table, err := sms.NewRoutes(routes)
	if err != nil {
		return nil, fmt.Errorf("carriers: %w", err)
	}
	return table, nil
}

func limitsOf(c *configs.Limits) intake.Limits {
	return intake.Limits{RepeatInterval: c.RepeatInterval, RepeatsADay: c.RepeatsADay, NumberADay: c.NumberADay,
		CreditsADay: int64(c.CreditsADay), Singles: c.Singles}
}

// namesOf looks up messages' ULIDs for the log.
func namesOf(store *messages.Store) func(context.Context, int64) string {
	return func(ctx context.Context, id int64) string {
		names, err := store.ULIDs(ctx, []int64{id})
		if name, known := names[id]; err == nil && known {
			return name.String()
		}
		return ""
	}
}

func dispatcherOptions(c *configs.Config, log *slog.Logger, metrics prometheus.Registerer) dispatcher.Options {
	options := dispatcher.Options{Validity: c.Messages.Validity, Refund: c.Billing.Refund.Is,
		ReceiptRetention: c.Retention.Receipts, InboundRetention: c.Messages.InboundRetention,
		MessageRetention: c.Retention.Messages, BodyRetention: c.Retention.Bodies, NumberRetention: c.Retention.Numbers, Log: log, Metrics: metrics}
	for i := range c.Carriers {
		options.Carriers = append(options.Carriers, carrierOf(&c.Carriers[i]))
	}
	return options
}

func switchboardOptions(c *configs.Config, route func(sms.Number) (string, bool), q *queue.Queue, log *slog.Logger, metrics prometheus.Registerer) switchboard.Options {
	stop, start := c.Inbound.Words()
	return switchboard.Options{Assembly: c.Inbound.Assembly, Repeats: c.Inbound.Repeats, StopWords: stop, StartWords: start,
		StopReply: c.Inbound.StopReply, StartReply: c.Inbound.StartReply, TestSender: c.TestSender, Validity: c.Messages.Validity,
		Route: route, Push: q.Push, Log: log, Metrics: metrics}
}

// carrierOf translates a checked configuration.
func carrierOf(c *configs.Carrier) dispatcher.Carrier {
	carrier := dispatcher.Carrier{
		Name: c.Name, Confirm: c.Confirm.Is, OnReceiptTimeout: sms.Status(c.OnReceiptTimeout.Is), ReceiptTimeout: c.ReceiptTimeout,
		IDFormat: c.MessageIDFormat.Is, States: map[string]sms.Status{}, Concat: c.Concat.Is, Alphabet: c.Alphabet.Is,
		Validity: c.ValidityPeriod.Is, SourceTON: uint8(c.SourceTON), SourceNPI: uint8(c.SourceNPI),
		DestTON: uint8(c.DestTON), DestNPI: uint8(c.DestNPI), ServiceType: c.ServiceType,
		NoReference: !c.UserReference, OnAmbiguous: c.OnAmbiguous.Is, RetryMin: c.RetryMin, RetryMax: c.RetryMax, Failover: c.Failover, FailoverAfter: c.FailoverAfter,
		SecondCarrier: c.SecondCarrier, SecondWithin: c.SecondWithin, MaxUnmatched: c.MaxUnmatched, MaxInbound: c.MaxInbound,
	}
	for state, meaning := range c.ReceiptStates {
		carrier.States[state] = sms.Status(meaning.Is)
	}
	tlvs, _ := c.StaticTLVs() // checked by configs, as are the classes and the TLS files
	for _, tlv := range tlvs {
		carrier.TLVs = append(carrier.TLVs, smpp.TLV(tlv))
	}
	carrier.Classes, _ = c.Classes()
	for i := range c.Links {
		l := &c.Links[i]
		tls, _ := l.TLSConfig()
		carrier.Links = append(carrier.Links, dispatcher.Link{Weight: l.Weight, Binds: l.Binds, Options: smpp.Options{
			Name: l.Name, Address: string(l.Address), TLS: tls, Mode: l.Bind.Is, SystemID: l.SystemID, Password: string(l.Password),
			SystemType: l.SystemType, Window: l.Window, TPS: float64(l.TPS), EnquireLink: l.EnquireLink, EnquireTimeout: l.EnquireTimeout,
			ResponseTimeout: l.ResponseTimeout, DialTimeout: l.ConnectTimeout, BindTimeout: l.BindTimeout, UnknownHold: c.UnknownHold,
			DrainTimeout: 4 * time.Second, UnbindTimeout: time.Second,
		}})
	}
	return carrier
}
