package web

import (
	"context"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"

	"intumwa/accounts/people"
	"intumwa/internal/throttle"
	"intumwa/texts"
)

// Options of [New].
type Options struct {
	DocsURL        string        // of the API's reference; empty: no link to it
	CreditsNotice  string        // how customers get credits, from the operator
	TrustedProxies []string      // whose X-Forwarded-For is trusted
	SecureCookies  bool          // HTTPS only
	SessionIdle    time.Duration // an unused session ends
	SMPP           bool          // customers can bind by SMPP
	AtOnce         int           // concurrent requests at the database; 8 if 0
	// of those, per user, or per network address without a session; if 0, 4, at most half of AtOnce
	AtOnceOfOne int
	Uploads     map[string]Upload // the routes whose form has a file, by method and path
	Missing     []error           // errors of handlers that mean 404
	Words       *texts.Texts
	Log         *slog.Logger
	Metrics     prometheus.Registerer // nil: not registered

	Templates func() (*template.Template, error) // of each page its title and its main part, and the frame
	Nav       func(*Visit) []NavGroup            // of a signed-in user
	Sessions  *people.Sessions
	Balance   func(ctx context.Context, company int64) (int64, error)
}

// Site is what all pages have in common.
type Site struct {
	*gin.Engine

	opts        Options
	metrics     *metrics
	crossOrigin *http.CrossOriginProtection

	Turns          *throttle.Turns // at the database
	Downloads      *throttle.Turns // downloads, per company
	downloaders    *throttle.Turns // downloads, per network address
	Patience       time.Duration   // for a download's client
	uploads        *throttle.Turns // uploads, per company; the client decides how long they last
	uploaders      *throttle.Turns // uploads, per network address: anyone can create companies
	documents      *throttle.Turns // uploads of documents, which are larger
	adminDownloads *throttle.Turns // downloads, per administrator
	large          *throttle.Turns // large uploads, per company
	heavy          *throttle.Turns // work that needs a multiple of a file's size, per company

	failureLogged atomic.Int64 // Unix second of the last log line about a failed request
}

// New returns a site without pages.
func New(opts Options) (*Site, error) {
	if opts.AtOnce == 0 {
		opts.AtOnce = turnsOfAll
	}
	if opts.AtOnceOfOne == 0 {
		opts.AtOnceOfOne = min(turnsOfOne, max(1, opts.AtOnce/2)) // one user leaves some to others
	}
	gin.SetMode(gin.ReleaseMode)
	s := &Site{Engine: gin.New(), opts: opts, metrics: newMetrics(opts.Metrics),
		crossOrigin: http.NewCrossOriginProtection(), Turns: throttle.NewTurns(opts.AtOnce, opts.AtOnceOfOne),
		uploads:        throttle.NewTurns(uploadsOfAll, UploadsOfCompany),
		uploaders:      throttle.NewTurns(uploadsOfAll, UploadsOfAddress),
		documents:      throttle.NewTurns(documentsOfAll, DocumentsOfAddress),
		Downloads:      throttle.NewTurns(DownloadsOfAll, DownloadsOfOne),
		downloaders:    throttle.NewTurns(DownloadsOfAll, DownloadsOfOrigin),
		adminDownloads: throttle.NewTurns(downloadsOfAdmins, DownloadsOfOne), Patience: downloadPatience,
		large: throttle.NewTurns(largeUploads, 1), heavy: throttle.NewTurns(heavyAtOnce, 1)}
	s.HandleMethodNotAllowed = true
	s.RedirectTrailingSlash = false
	s.RemoteIPHeaders = []string{"X-Forwarded-For"} // a proxy may forward a client's X-Real-IP
	if err := s.SetTrustedProxies(opts.TrustedProxies); err != nil {
		return nil, fmt.Errorf("trusted proxies: %w", err)
	}
	s.Use(s.metrics.observe, s.harden, s.recover, s.bound, s.sameOrigin)
	s.NoRoute(s.Open(func(*Visit) error { return ErrNotFound }))
	s.NoMethod(s.Open(func(*Visit) error { return failures[http.StatusMethodNotAllowed] }))
	return s, nil
}

// ServeHTTP handles a request; HEAD as GET, whose body net/http does not send.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		r = r.Clone(context.WithValue(r.Context(), headKey{}, true))
		r.Method = http.MethodGet
	}
	s.Engine.ServeHTTP(w, r)
}

type headKey struct{}

// HeadOnly reports whether the request is HEAD: then read no row of a file and consume no one-time secret.
func (v *Visit) HeadOnly() bool { return v.Ctx().Value(headKey{}) != nil }

type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "intumwa_dashboard_requests_total",
			Help: "Dashboard requests.",
		}, []string{"route", "method", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "intumwa_dashboard_request_seconds",
			Help:    "Duration of dashboard requests.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
		}, []string{"route"}),
	}
	if registerer != nil {
		registerer.MustRegister(m.requests, m.seconds)
	}
	return m
}

// observe counts and times requests. Unknown paths share one label value, as do unusual methods.
func (m *metrics) observe(c *gin.Context) {
	start := time.Now()
	c.Next()
	route, method := c.FullPath(), c.Request.Method
	if route == "" {
		route, method = "none", "any"
	}
	m.requests.WithLabelValues(route, method, strconv.Itoa(c.Writer.Status())).Inc()
	m.seconds.WithLabelValues(route).Observe(time.Since(start).Seconds())
}
