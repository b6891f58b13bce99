package api

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	requests *prometheus.CounterVec   // route, method, code
	duration *prometheus.HistogramVec // route
	inFlight prometheus.Gauge
	waiting  prometheus.Gauge
	memory   prometheus.Gauge
	dropped  *prometheus.CounterVec // kind
}

func newMetrics(reg prometheus.Registerer) *metrics {
	register := promauto.With(reg)
	m := &metrics{
		requests: register.NewCounterVec(prometheus.CounterOpts{Name: "intumwa_http_requests_total",
			Help: "API requests."}, []string{"route", "method", "code"}),
		duration: register.NewHistogramVec(prometheus.HistogramOpts{Name: "intumwa_http_request_duration_seconds",
			Help:    "Duration of API requests.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}}, []string{"route"}),
		inFlight: register.NewGauge(prometheus.GaugeOpts{Name: "intumwa_http_requests_in_flight",
			Help: "API requests in flight."}),
		waiting: register.NewGauge(prometheus.GaugeOpts{Name: "intumwa_http_requests_waiting",
			Help: "API requests that wait for events (GET /v1/events)."}),
		memory: register.NewGauge(prometheus.GaugeOpts{Name: "intumwa_http_memory_octets",
			Help: "Bytes of request bodies and large responses in memory (64 MiB at most)."}),
		dropped: register.NewCounterVec(prometheus.CounterOpts{Name: "intumwa_http_memory_dropped_total",
			Help: "Bodies and responses dropped because their memory was full."}, []string{"kind"}),
	}
	for _, what := range []string{"body", "answer"} {
		m.dropped.WithLabelValues(what)
	}
	return m
}

// request counts one request. Unknown paths and unusual methods share a label value, so clients cannot create series.
func (m *metrics) request(route, method string, code int, took time.Duration) {
	if route == "" {
		route = "none"
	}
	switch method {
	case "GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH":
	default:
		method = "other"
	}
	m.requests.WithLabelValues(route, method, strconv.Itoa(code)).Inc()
	m.duration.WithLabelValues(route).Observe(took.Seconds())
}
