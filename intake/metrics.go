package intake

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"intumwa/messages"
	"intumwa/sms"
	"intumwa/verifications"
)

type metrics struct {
	accepted  *prometheus.CounterVec // kind
	segments  *prometheus.CounterVec // encoding
	refused   *prometheus.CounterVec // reason
	debited   prometheus.Counter
	replays   prometheus.Counter
	commits   prometheus.Histogram
	perCommit prometheus.Histogram
	unpushed  prometheus.Counter
	waited    prometheus.Counter
	ended     *prometheus.CounterVec // carrier, status
	unread    prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	register := promauto.With(reg)
	m := &metrics{
		accepted: register.NewCounterVec(prometheus.CounterOpts{Name: "intumwa_messages_accepted_total",
			Help: "Messages accepted."}, []string{"kind"}),
		segments: register.NewCounterVec(prometheus.CounterOpts{Name: "intumwa_message_segments_total",
			Help: "Segments accepted."}, []string{"encoding"}),
		refused: register.NewCounterVec(prometheus.CounterOpts{Name: "intumwa_requests_rejected_total",
			Help: "Requests refused with 400, by rule."}, []string{"reason"}),
		debited: register.NewCounter(prometheus.CounterOpts{Name: "intumwa_credits_debited_total",
			Help: "Credits taken for accepted messages."}),
		replays: register.NewCounter(prometheus.CounterOpts{Name: "intumwa_idempotency_replays_total",
			Help: "Repetitions that got the response of their Idempotency-Key."}),
		commits: register.NewHistogram(prometheus.HistogramOpts{Name: "intumwa_intake_commit_duration_seconds",
			Help:    "Duration of a group commit.",
			Buckets: []float64{.0005, .001, .002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}}),
		perCommit: register.NewHistogram(prometheus.HistogramOpts{Name: "intumwa_intake_commit_requests",
			Help: "Requests in a group commit.", Buckets: prometheus.ExponentialBuckets(1, 2, 10)}),
		unpushed: register.NewCounter(prometheus.CounterOpts{Name: "intumwa_queue_push_failures_total",
			Help: "Messages not pushed to Redis at their commit. The dispatcher pushes them later."}),
		waited: register.NewCounter(prometheus.CounterOpts{Name: "intumwa_intake_set_aside_total",
			Help: "Requests that waited for a locked balance."}),
	}
	m.ended = register.NewCounterVec(prometheus.CounterOpts{Name: "intumwa_verifications_finished_total",
		Help: "Verifications that ended, by the carrier of their last message and how they ended."},
		[]string{"carrier", "status"})
	m.unread = register.NewGauge(prometheus.GaugeOpts{Name: "intumwa_verifications_unanswered_blocks",
		Help: "Blocks of 10,000 numbers to which a company sent at least 50 codes within an hour, of which fewer than a " +
			"fifth were entered."})
	for _, kind := range kinds {
		m.accepted.WithLabelValues(kind)
	}
	return m
}

// verified counts verifications that ended.
func (m *metrics) verified(ended []verifications.Verification) {
	for i := range ended {
		if v := &ended[i]; v.Carrier != sms.SandboxCarrier {
			m.ended.WithLabelValues(v.Carrier, v.State.String()).Inc()
		}
	}
}

// count counts and logs the messages of committed requests.
func (m *metrics) count(requests []*request, log *slog.Logger) {
	for _, r := range requests {
		m.accepted.WithLabelValues(r.kind.String()).Add(float64(len(r.messages)))
		if r.kind.live() {
			m.debited.Add(float64(r.segments))
		}
		for _, msg := range r.messages {
			if r.kind != kindSandbox { // no carrier gets those
				m.segments.WithLabelValues(msg.Encoding.String()).Add(float64(msg.Segments))
			}
			logAccepted(log, r, msg)
		}
	}
}

// logAccepted logs a committed message at debug level. At other levels it costs nothing.
func logAccepted(log *slog.Logger, r *request, m *messages.Message) {
	if !log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	fields := []any{"id", m.ULID, "kind", r.kind.String(), "company_id", m.CompanyID, "carrier", m.Carrier,
		"number", m.Number.Masked(), "segments", m.Segments}
	if r.requestID != "" {
		fields = append(fields, "request_id", r.requestID)
	}
	if m.Batch != nil {
		fields = append(fields, "batch_id", r.ref)
	}
	log.Debug("message accepted", fields...)
}
