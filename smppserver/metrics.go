package smppserver

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Why a bind is refused: label values of a metric.
const (
	refusedLogin       = "login"
	refusedNetwork     = "network"
	refusedSessions    = "sessions"
	refusedFlood       = "too_many"
	refusedUnavailable = "unavailable"
)

type metrics struct {
	bindsRefused    *prometheus.CounterVec // reason
	accepted        prometheus.Counter
	refused         *prometheus.CounterVec // status
	unknown         prometheus.Counter
	deliveries      *prometheus.CounterVec // outcome
	dropped         *prometheus.CounterVec // reason
	waiting, oldest prometheus.Gauge
}

// Outcomes of deliveries, and why some were dropped: label values of metrics.
const (
	deliveryDone    = "done"
	deliveryRefused = "refused"
	deliveryAgain   = "again"
	droppedOld      = "old"
	droppedMany     = "too_many"
)

func newMetrics(reg prometheus.Registerer) *metrics {
	register := promauto.With(reg)
	m := &metrics{
		bindsRefused: register.NewCounterVec(prometheus.CounterOpts{Name: "intumwa_smpp_server_binds_refused_total",
			Help: "Refused binds of customers' programs."}, []string{"reason"}),
		accepted: register.NewCounter(prometheus.CounterOpts{Name: "intumwa_smpp_server_messages_accepted_total",
			Help: "Accepted submit_sm and data_sm."}),
		refused: register.NewCounterVec(prometheus.CounterOpts{Name: "intumwa_smpp_server_requests_refused_total",
			Help: "Refused requests of bound programs."}, []string{"status"}),
		unknown: register.NewCounter(prometheus.CounterOpts{Name: "intumwa_smpp_server_outcomes_unknown_total",
			Help: "submit_sm without an answer, because their COMMIT had none."}),
		deliveries: register.NewCounterVec(prometheus.CounterOpts{Name: "intumwa_smpp_server_deliveries_total",
			Help: "Receipts and MOs to customers' binds, by outcome."}, []string{"outcome"}),
		dropped: register.NewCounterVec(prometheus.CounterOpts{Name: "intumwa_smpp_server_deliveries_dropped_total",
			Help: "Receipts and MOs that no bind took in time."}, []string{"reason"}),
		waiting: register.NewGauge(prometheus.GaugeOpts{Name: "intumwa_smpp_server_deliveries_waiting",
			Help: "Receipts and MOs that wait for customers' binds."}),
		oldest: register.NewGauge(prometheus.GaugeOpts{Name: "intumwa_smpp_server_deliveries_oldest_seconds",
			Help: "How long the oldest waiting receipt or MO has waited."}),
	}
	for _, reason := range []string{refusedLogin, refusedNetwork, refusedSessions, refusedFlood, refusedUnavailable} {
		m.bindsRefused.WithLabelValues(reason)
	}
	for _, outcome := range []string{deliveryDone, deliveryRefused, deliveryAgain} {
		m.deliveries.WithLabelValues(outcome)
	}
	for _, reason := range []string{droppedOld, droppedMany} {
		m.dropped.WithLabelValues(reason)
	}
	return m
}
