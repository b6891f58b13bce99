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
	pdus            *prometheus.CounterVec
	binds           *prometheus.CounterVec
	closes          *prometheus.CounterVec
	results         *prometheus.CounterVec
	submitSeconds   *prometheus.HistogramVec
	enquireSeconds  *prometheus.HistogramVec
	enquireTimeouts *prometheus.CounterVec
	timeouts        *prometheus.CounterVec
	late            *prometheus.CounterVec
	throttled       *prometheus.CounterVec
	unmatched       *prometheus.CounterVec
	malformed       *prometheus.CounterVec
	refused         *prometheus.CounterVec

	mu      sync.Mutex
	running map[*Bind]struct{}
}

var linkLabels = []string{"carrier", "link"}

// NewMetrics returns metrics registered with reg; with nil they are not registered. It
// panics if reg has them already.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	register := promauto.With(reg)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return register.NewCounterVec(prometheus.CounterOpts{
			Namespace: "intumwa", Subsystem: "smpp", Name: name, Help: help,
		}, append(linkLabels[:2:2], labels...))
	}
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return register.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "intumwa", Subsystem: "smpp", Name: name, Help: help, Buckets: buckets,
		}, linkLabels)
	}
	m := &Metrics{
		pdus: counter("pdus_total", "PDUs.",
			"direction", "command", "status"),
		binds: counter("bind_attempts_total", "Bind attempts.", "result", "status"),
		closes: counter("session_closed_total", "Ended sessions.",
			"reason"),
		results: counter("submit_results_total", "Finished submit_sm.",
			"result"),
		submitSeconds: histogram("submit_duration_seconds", "Response time of submit_sm.",
			[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}),
		enquireSeconds: histogram("enquire_link_duration_seconds", "Round trip of enquire_link.",
			[]float64{.001, .005, .025, .1, .25, .5, 1, 2.5, 5, 10}),
		enquireTimeouts: counter("enquire_link_timeouts_total", "Sessions ended because the peer was silent."),
		timeouts:        counter("submit_timeouts_total", "submit_sm without a response in time."),
		late:            counter("late_responses_total", "submit_sm_resp after the response timeout."),
		throttled:       counter("throttled_total", "submit_sm refused as too fast."),
		unmatched:       counter("unmatched_responses_total", "Responses without a request."),
		malformed:       counter("malformed_pdus_total", "deliver_sm and data_sm that could not be decoded."),
		refused:         counter("deliveries_refused_total", "deliver_sm refused because unanswered ones fill the memory."),
		running:         make(map[*Bind]struct{}),
	}
	if reg != nil {
		reg.MustRegister(gauges{m})
	}
	return m
}

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

// bindMetrics is the metrics of one bind, with the series of the hot path looked up.
type bindMetrics struct {
	pdus            *prometheus.CounterVec
	binds           *prometheus.CounterVec
	closes          *prometheus.CounterVec
	results         [Accepted + 1]prometheus.Counter
	submit          prometheus.Observer
	enquire         prometheus.Observer
	enquireTimeouts prometheus.Counter
	timeouts        prometheus.Counter
	late            prometheus.Counter
	throttled       prometheus.Counter
	unmatched       prometheus.Counter
	malformed       prometheus.Counter
	refused         prometheus.Counter

	submitOut, submitRespIn, deliverIn, deliverRespOut prometheus.Counter
}

const (
	directionIn  = "in"
	directionOut = "out"
)

func (m *Metrics) bind(carrier, name string) *bindMetrics {
	own := prometheus.Labels{"carrier": carrier, "link": name}
	l := &bindMetrics{
		pdus:            m.pdus.MustCurryWith(own),
		binds:           m.binds.MustCurryWith(own),
		closes:          m.closes.MustCurryWith(own),
		submit:          m.submitSeconds.With(own),
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
	l.submitOut = l.pdu(directionOut, cmdSubmitSM, StatusOK)
	l.submitRespIn = l.pdu(directionIn, cmdSubmitSMResp, StatusOK)
	l.deliverIn = l.pdu(directionIn, cmdDeliverSM, StatusOK)
	l.deliverRespOut = l.pdu(directionOut, cmdDeliverSMResp, StatusOK)
	return l
}

// pdu returns the series for such PDUs. The status of a request has no meaning and is
// counted as ESME_ROK.
func (l *bindMetrics) pdu(direction string, cmd command, status Status) prometheus.Counter {
	if !cmd.response() {
		status = StatusOK
	}
	return l.pdus.WithLabelValues(direction, cmd.String(), status.label())
}

func (l *bindMetrics) received(cmd command, status Status) {
	switch {
	case cmd == cmdSubmitSMResp && status == StatusOK:
		l.submitRespIn.Inc()
	case cmd == cmdDeliverSM:
		l.deliverIn.Inc()
	default:
		l.pdu(directionIn, cmd, status).Inc()
	}
}

func (l *bindMetrics) sent(cmd command, status Status) {
	if cmd == cmdDeliverSMResp && status == StatusOK {
		l.deliverRespOut.Inc()
		return
	}
	l.pdu(directionOut, cmd, status).Inc()
}

func (l *bindMetrics) submitsWritten(n int) { l.submitOut.Add(float64(n)) }

func (l *bindMetrics) answered(r Result) {
	l.results[r.Outcome].Inc()
	if r.Outcome == Accepted || r.Outcome == Rejected {
		l.submit.Observe(r.Latency.Seconds())
	}
}

func (l *bindMetrics) bindAttempt(result string, status Status) {
	l.binds.WithLabelValues(result, status.label()).Inc()
}

func (l *bindMetrics) closed(reason string) { l.closes.WithLabelValues(reason).Inc() }

// ServerMetrics counts for all peers of a process. Every metric is named intumwa_smpp_server_…; its labels take values of
// closed sets only.
type ServerMetrics struct{}

// NewServerMetrics returns metrics registered with reg; with nil they are not registered. It panics if reg has them already.
func NewServerMetrics(reg prometheus.Registerer) *ServerMetrics { panic("soon") }
