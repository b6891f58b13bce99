// Package api is the public HTTP face: shapes, validation texts (422), status
// codes. What a request may do is intake's business; this package says it in
// JSON.
//
// Order of checks (decisions.md, Requests): 401 token → 429 rate → 413 body →
// 415 Content-Type → 400 malformed JSON → 422 validation → 400 business rules.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"intumwa/accounts"
	"intumwa/intake"
	"intumwa/sms"
	"intumwa/throttle"
)

// DefaultMaxBody is the largest request body in octets.
const DefaultMaxBody = 16 << 20

// Options configures the API.
type Options struct {
	Plan           *sms.Plan // valid numbers
	TestSender     string
	MaxBody        int64 // octets; default DefaultMaxBody
	TrustedProxies []string
	Log            *slog.Logger
	Metrics        prometheus.Registerer
}

// API serves the public endpoints.
type API struct {
	opts     Options
	accounts *accounts.Accounts
	throttle *throttle.Throttle
	intake   *intake.Intake
	metrics  *metrics
}

// New returns the API's handler. It starts nothing.
func New(accounts *accounts.Accounts, limit *throttle.Throttle, in *intake.Intake, opts Options) (http.Handler, error) {
	if opts.MaxBody == 0 {
		opts.MaxBody = DefaultMaxBody
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	a := &API{opts: opts, accounts: accounts, throttle: limit, intake: in, metrics: newMetrics(opts.Metrics)}
	return a.routes()
}

func (a *API) routes() (http.Handler, error) {
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.HandleMethodNotAllowed = true
	r.RedirectTrailingSlash = false
	if err := r.SetTrustedProxies(a.opts.TrustedProxies); err != nil {
		return nil, err
	}
	r.Use(a.observe, a.recover)
	r.NoRoute(func(c *gin.Context) { say(c, http.StatusNotFound, "Not found.") })
	r.NoMethod(func(c *gin.Context) { say(c, http.StatusMethodNotAllowed, "Method not allowed.") })

	send := r.Group("/v1/sms", a.authenticate, a.limit)
	send.POST("", a.sendSingle)
	return r, nil
}

// message is the body of every answer that is no success.
type message struct {
	Message string `json:"message"`
}

func say(c *gin.Context, status int, text string) {
	c.AbortWithStatusJSON(status, message{text})
}

// recover turns a panic into a 500 that says nothing of it.
func (a *API) recover(c *gin.Context) {
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler { //nolint:errorlint // the sentinel of net/http, compared as net/http does
				panic(p)
			}
			a.opts.Log.Error("panic in a handler", "path", c.FullPath(), "panic", p)
			if !c.Writer.Written() {
				say(c, http.StatusInternalServerError, "Server error.")
			}
		}
	}()
	c.Next()
}

// observe counts and times the request.
func (a *API) observe(c *gin.Context) {
	start := time.Now()
	a.metrics.inFlight.Inc()
	defer a.metrics.inFlight.Dec()
	c.Next()
	a.metrics.request(c.FullPath(), c.Request.Method, c.Writer.Status(), time.Since(start))
}

// unavailable answers for a database that is away: nothing was charged.
func (a *API) unavailable(c *gin.Context, doing string, err error) {
	if c.Request.Context().Err() == nil {
		a.opts.Log.Error(doing, "path", c.FullPath(), "error", err)
	}
	c.Header("Retry-After", "5")
	say(c, http.StatusServiceUnavailable, "Service unavailable.")
}

// fail answers for a fault of ours; the details stay in the log.
func (a *API) fail(c *gin.Context, doing string, err error) {
	a.opts.Log.Error(doing, "path", c.FullPath(), "error", err)
	say(c, http.StatusInternalServerError, "Server error.")
}

// background is the context of work that goes on when the client hangs up.
func background(c *gin.Context) context.Context { return context.WithoutCancel(c.Request.Context()) }
