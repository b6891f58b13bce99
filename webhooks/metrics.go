package webhooks

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	attempts   map[string]map[string]prometheus.Counter // by event, by result
	duration   prometheus.Histogram
	oldest     prometheus.Gauge
	givenUp    prometheus.Counter
	inFlight   prometheus.Gauge
	delivering prometheus.Gauge
	active     prometheus.Gauge
	inactive   prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) *metrics {
	f := promauto.With(r)
	attempts := f.NewCounterVec(prometheus.CounterOpts{Name: "intumwa_webhook_attempts_total", Help: "Webhook calls."},
		[]string{"event", "result"})
	endpoints := f.NewGaugeVec(prometheus.GaugeOpts{Name: "intumwa_webhook_endpoints", Help: "Endpoints."},
		[]string{"state"})
	m := &metrics{
		attempts: make(map[string]map[string]prometheus.Counter),
		duration: f.NewHistogram(prometheus.HistogramOpts{Name: "intumwa_webhook_attempt_duration_seconds",
			Help:    "Duration of webhook calls.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}}),
		oldest: f.NewGauge(prometheus.GaugeOpts{Name: "intumwa_webhook_queue_oldest_age_seconds",
			Help: "How long the oldest due delivery has waited."}),
		givenUp: f.NewCounter(prometheus.CounterOpts{Name: "intumwa_webhook_exhausted_total",
			Help: "Deliveries given up after their last attempt."}),
		inFlight: f.NewGauge(prometheus.GaugeOpts{Name: "intumwa_webhook_calls_in_flight",
			Help: "Webhook calls in flight."}),
		delivering: f.NewGauge(prometheus.GaugeOpts{Name: "intumwa_webhook_delivering",
			Help: "1 while this process can deliver webhooks, else 0."}),
		active:   endpoints.WithLabelValues("active"),
		inactive: endpoints.WithLabelValues("inactive"),
	}
	for _, event := range eventNames {
		m.attempts[event] = make(map[string]prometheus.Counter)
		for _, result := range results {
			m.attempts[event][result] = attempts.WithLabelValues(event, result)
		}
	}
	return m
}
