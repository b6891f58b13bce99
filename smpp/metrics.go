package smpp

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics counts for all binds of a process. Every metric is named
// intumwa_smpp_… and labelled with carrier and link; other labels take values
// of closed sets only.
type Metrics struct {
	counters

	mu      sync.Mutex
	running map[*Bind]struct{}
}

// ServerMetrics counts for all peers of a process. Every metric is named intumwa_smpp_server_…; its labels take values
// of closed sets only.
type ServerMetrics struct {
	all   *sessionMetrics
	bound prometheus.Gauge
}

// counters are the metrics of sessions, in either direction.
type counters struct {
	pdus            *prometheus.CounterVec
	binds           *prometheus.CounterVec
	closes          *prometheus.CounterVec
	results         *prometheus.CounterVec
	answerSeconds   *prometheus.HistogramVec
	enquireSeconds  *prometheus.HistogramVec
	enquireTimeouts *prometheus.CounterVec
	timeouts        *prometheus.CounterVec
	late            *prometheus.CounterVec
	throttled       *prometheus.CounterVec
	unmatched       *prometheus.CounterVec
	malformed       *prometheus.CounterVec
	refused         *prometheus.CounterVec

	vendors *vendorStatuses
}

var linkLabels = []string{"carrier", "link"}

// NewMetrics returns metrics registered with reg; with nil they are not registered. It
// panics if reg has them already.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		counters: newCounters(reg, "smpp", cmdSubmitSM, cmdDeliverSM, linkLabels),
		running:  make(map[*Bind]struct{}),
	}
	if reg != nil {
		reg.MustRegister(gauges{m})
	}
	return m
}

// NewServerMetrics returns metrics registered with reg; with nil they are not registered. It panics if reg has them
// already.
func NewServerMetrics(reg prometheus.Registerer) *ServerMetrics {
	c := newCounters(reg, "smpp_server", cmdDeliverSM, cmdSubmitSM, nil)
	return &ServerMetrics{
		all: c.of(cmdDeliverSM, cmdSubmitSM, nil),
		bound: promauto.With(reg).NewGauge(prometheus.GaugeOpts{
			Namespace: "intumwa", Subsystem: "smpp_server", Name: "sessions_bound",
			Help: "Binds of customers' programs at this process.",
		}),
	}
}

// newCounters names the metrics of sessions that send one request through their windows and take another.
func newCounters(reg prometheus.Registerer, subsystem string, sends, takes command, own []string) counters {
	register := promauto.With(reg)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return register.NewCounterVec(prometheus.CounterOpts{
			Namespace: "intumwa", Subsystem: subsystem, Name: name, Help: help,
		}, append(own[:len(own):len(own)], labels...))
	}
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return register.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "intumwa", Subsystem: subsystem, Name: name, Help: help, Buckets: buckets,
		}, own)
	}
	verb, refused := "submit", counterName{"deliveries_refused_total",
		"deliver_sm refused because unanswered ones fill the memory."}
	malformed := "deliver_sm and data_sm that could not be decoded."
	if takes == cmdSubmitSM {
		verb, refused = "deliver", counterName{"requests_excess_total",
			"Requests refused because too many are unanswered, or at the end of a session."}
		malformed = "Requests that could not be decoded."
	}
	c := counters{
		pdus: counter("pdus_total", "PDUs. A vendor's status has its own label if it is one of the ten most frequent, "+
			"else other.",
			"direction", "command", "status"),
		binds: counter("bind_attempts_total", "Bind attempts.", "result", "status"),
		closes: counter("session_closed_total", "Ended sessions.",
			"reason"),
		results: counter(verb+"_results_total", "Finished "+sends.String()+".",
			"result"),
		answerSeconds: histogram(verb+"_duration_seconds", "Response time of "+sends.String()+".",
			[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}),
		enquireSeconds: histogram("enquire_link_duration_seconds", "Round trip of enquire_link.",
			[]float64{.001, .005, .025, .1, .25, .5, 1, 2.5, 5, 10}),
		enquireTimeouts: counter("enquire_link_timeouts_total", "Sessions ended because the peer was silent."),
		timeouts:        counter(verb+"_timeouts_total", sends.String()+" without a response in time."),
		late:            counter("late_responses_total", sends.String()+"_resp after the response timeout."),
		throttled:       counter("throttled_total", sends.String()+" refused as too fast."),
		unmatched:       counter("unmatched_responses_total", "Responses without a request."),
		malformed:       counter("malformed_pdus_total", malformed),
		refused:         counter(refused.name, refused.help),
	}
	c.vendors = &vendorStatuses{count: make(map[Status]uint64), labelled: make(map[Status]bool),
		vectors: []*prometheus.CounterVec{c.pdus, c.binds}}
	return c
}

type counterName struct{ name, help string }

// watch adds the gauges of a running bind; forget removes them.
func (m *Metrics) watch(b *Bind) {
	m.mu.Lock()
	m.running[b] = struct{}{}
	m.mu.Unlock()
}

func (m *Metrics) forget(b *Bind) {
	m.mu.Lock()
	delete(m.running, b)
	m.mu.Unlock()
}

// sessionMetrics is the metrics of one bind, or of all served sessions, with the series of the hot path looked up.
type sessionMetrics struct {
	pdus            *prometheus.CounterVec
	binds           *prometheus.CounterVec
	closes          *prometheus.CounterVec
	results         [Accepted + 1]prometheus.Counter
	answer          prometheus.Observer
	enquire         prometheus.Observer
	enquireTimeouts prometheus.Counter
	timeouts        prometheus.Counter
	late            prometheus.Counter
	throttled       prometheus.Counter
	unmatched       prometheus.Counter
	malformed       prometheus.Counter
	refused         prometheus.Counter

	vendors                               *vendorStatuses
	sends, takes                          command
	sentOut, answerIn, takenIn, answerOut prometheus.Counter
}

const (
	directionIn  = "in"
	directionOut = "out"
)

func (m *Metrics) bind(carrier, name string) *sessionMetrics {
	return m.of(cmdSubmitSM, cmdDeliverSM, prometheus.Labels{"carrier": carrier, "link": name})
}

// of returns the metrics with these labels, of sessions that send one request through their windows and take another.
func (m *counters) of(sends, takes command, own prometheus.Labels) *sessionMetrics {
	l := &sessionMetrics{
		vendors:         m.vendors,
		sends:           sends,
		takes:           takes,
		pdus:            m.pdus.MustCurryWith(own),
		binds:           m.binds.MustCurryWith(own),
		closes:          m.closes.MustCurryWith(own),
		answer:          m.answerSeconds.With(own),
		enquire:         m.enquireSeconds.With(own),
		enquireTimeouts: m.enquireTimeouts.With(own),
		timeouts:        m.timeouts.With(own),
		late:            m.late.With(own),
		throttled:       m.throttled.With(own),
		unmatched:       m.unmatched.With(own),
		malformed:       m.malformed.With(own),
		refused:         m.refused.With(own),
	}
	for o := range l.results {
		l.results[o] = m.results.MustCurryWith(own).WithLabelValues(Outcome(o).String())
	}
	l.sentOut = l.pdu(directionOut, sends, StatusOK)
	l.answerIn = l.pdu(directionIn, sends|responseBit, StatusOK)
	l.takenIn = l.pdu(directionIn, takes, StatusOK)
	l.answerOut = l.pdu(directionOut, takes|responseBit, StatusOK)
	return l
}

// pdu returns the series for such PDUs. The status of a request has no meaning and is
// counted as ESME_ROK.
func (l *sessionMetrics) pdu(direction string, cmd command, status Status) prometheus.Counter {
	if !cmd.response() {
		status = StatusOK
	}
	return l.pdus.WithLabelValues(direction, cmd.String(), l.vendors.label(status))
}

func (l *sessionMetrics) received(cmd command, status Status) {
	switch {
	case cmd == l.sends|responseBit && status == StatusOK:
		l.answerIn.Inc()
	case cmd == l.takes:
		l.takenIn.Inc()
	default:
		l.pdu(directionIn, cmd, status).Inc()
	}
}

func (l *sessionMetrics) sent(cmd command, status Status) {
	if cmd == l.takes|responseBit && status == StatusOK {
		l.answerOut.Inc()
		return
	}
	l.pdu(directionOut, cmd, status).Inc()
}

func (l *sessionMetrics) written(n int) { l.sentOut.Add(float64(n)) }

func (l *sessionMetrics) answered(r Result) {
	l.results[r.Outcome].Inc()
	if r.Outcome == Accepted || r.Outcome == Rejected {
		l.answer.Observe(r.Latency.Seconds())
	}
}

func (l *sessionMetrics) bindAttempt(result string, status Status) {
	l.binds.WithLabelValues(result, l.vendors.label(status)).Inc()
}

func (l *sessionMetrics) closed(reason string) { l.closes.WithLabelValues(reason).Inc() }
