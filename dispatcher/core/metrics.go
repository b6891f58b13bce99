package core

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"intumwa/dispatcher/setup"
	"intumwa/messages/retention"
)

// Metrics are those of a dispatcher, except the ones of its queue and of SMPP.
type Metrics struct {
	Depth, Oldest   *prometheus.GaugeVec   // carrier, lane
	Due             *prometheus.GaugeVec   // carrier, lane
	Info            *prometheus.GaugeVec   // carrier, confirm
	Retired         *prometheus.GaugeVec   // carrier
	MatchedLate     *prometheus.CounterVec // carrier
	Tasks           *prometheus.GaugeVec   // task
	Receipts        *prometheus.CounterVec // carrier, link, outcome
	unknownStates   *prometheus.CounterVec // carrier, state
	RefusedReceipts *prometheus.CounterVec // carrier
	Inbound         *prometheus.CounterVec // carrier
	Throttled       *prometheus.CounterVec // carrier, kind
	SetAside        *prometheus.CounterVec // carrier
	final           *prometheus.CounterVec // carrier, status, reason_class
	endToEnd        *prometheus.HistogramVec
	SettleTime      *prometheus.HistogramVec
	Stale           *prometheus.CounterVec
	Purged          *prometheus.CounterVec // kind
	PurgeBehind     *prometheus.GaugeVec   // kind
	Direct          *prometheus.CounterVec // carrier, lane
	Resent          *prometheus.CounterVec // carrier
	Rerouted        *prometheus.CounterVec // carrier
	Second          *prometheus.CounterVec // carrier, second, reason
	BreakerOpen     *prometheus.GaugeVec   // carrier, link
	SendersBlocked  *prometheus.GaugeVec   // carrier, link
	GivenUp         *prometheus.CounterVec // carrier, link
	Released        *prometheus.CounterVec // lane
	Scheduled       *prometheus.GaugeVec   // lane
	ScheduledLate   prometheus.Gauge
	Redelivered     prometheus.Counter
	Refunds         prometheus.Counter
	LowBalances     prometheus.Counter
}

// NewMetrics registers the metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	auto := promauto.With(reg)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return auto.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return auto.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	m := &Metrics{
		Depth: gauge("intumwa_queue_depth",
			"Messages that no carrier has yet.", "carrier", "lane"),
		Oldest: gauge("intumwa_queue_oldest_age_seconds",
			"Age of the oldest message that no carrier has yet, from acceptance or send_at.", "carrier", "lane"),
		Due: gauge("intumwa_queue_due_age_seconds",
			"How long the oldest due message has waited, not counting pauses between attempts.", "carrier", "lane"),
		Info: gauge("intumwa_carrier_info",
			"1 for each configured carrier.", "carrier", "confirm"),
		Retired: gauge("intumwa_carrier_retired",
			"1 for a configured carrier that an operator has retired, else 0.", "carrier"),
		unknownStates: counter("intumwa_receipt_unknown_states_total",
			"Receipts with a state that has no meaning (receipt_states), by state; other: the 21st and further ones, and what "+
				"is no word.", "carrier", "state"),
		MatchedLate: counter("intumwa_receipts_matched_late_total",
			"Receipts that came before their submit_sm_resp.", "carrier"),
		Tasks: gauge("intumwa_task_last_success_timestamp_seconds",
			"When this process started, or last did a task that one dispatcher does for all. Take the maximum.", "task"),
		Receipts: counter("intumwa_receipts_total", "Receipts.", "carrier", "link", "outcome"),
		RefusedReceipts: counter("intumwa_receipts_refused_total", "Receipts refused because they could not be stored.",
			"carrier"),
		Inbound: counter("intumwa_inbound_messages_total", "MOs.", "carrier"),
		Throttled: counter("intumwa_deliveries_throttled_total",
			"Unmatched receipts and MOs (inbound) refused because they exceed the carrier's hourly limit.", "carrier", "kind"),
		SetAside: counter("intumwa_deliveries_set_aside_total",
			"Receipts and MOs that the database can never store: acknowledged and dropped.", "carrier"),
		final: counter("intumwa_messages_final_total", "Messages that became sent or failed.", "carrier", "status",
			"reason_class"),
		endToEnd: auto.NewHistogramVec(prometheus.HistogramOpts{Name: "intumwa_message_end_to_end_seconds",
			Help:    "Time from acceptance, or send_at, to sent or failed.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 43200, 90000}}, []string{"carrier"}),
		SettleTime: auto.NewHistogramVec(prometheus.HistogramOpts{Name: "intumwa_settle_duration_seconds",
			Help:    "Duration of a settling transaction.",
			Buckets: []float64{.0005, .001, .002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}}, []string{"carrier"}),
		Stale: counter("intumwa_queue_stale_entries_total", "Queue entries of messages that no longer wait.", "carrier"),
		Direct: counter("intumwa_queue_bypassed_total", "Messages taken from the database because the queue failed.",
			"carrier", "lane"),
		Resent: counter("intumwa_segments_resent_total",
			"Segments sent again after a lost submit_sm_resp: each may arrive twice.", "carrier"),
		Rerouted: counter("intumwa_messages_rerouted_total",
			"Messages moved to another carrier because theirs was down or removed.", "carrier"),
		Second: counter("intumwa_messages_sent_on_total",
			"Messages that went to the second carrier.", "carrier", "second", "reason"),
		BreakerOpen: gauge("intumwa_link_breaker_open",
			"1 while the breaker has stopped the link: the carrier is bound and accepts nothing.", "carrier", "link"),
		SendersBlocked: gauge("intumwa_link_senders_held",
			"Senders whose messages wait because the carrier refuses them all.", "carrier", "link"),
		GivenUp: counter("intumwa_link_given_up_total",
			"Links handed to another dispatcher because the carrier was unreachable.", "carrier", "link"),
		Purged: counter("intumwa_purged_total", "Messages and texts (bodies) deleted, numbers obscured.", "kind"),
		PurgeBehind: gauge("intumwa_purge_behind_seconds",
			"How long the deletion of the oldest message, text or number is overdue.", "kind"),
		Released: counter("intumwa_scheduled_released_total", "Scheduled messages released at their time.", "lane"),
		Scheduled: gauge("intumwa_scheduled_messages",
			"Scheduled messages that are not due yet, counted every few minutes.", "lane"),
		ScheduledLate: auto.NewGauge(prometheus.GaugeOpts{Name: "intumwa_scheduled_late_seconds",
			Help: "How late the oldest due scheduled message is."}),
		Redelivered: auto.NewCounter(prometheus.CounterOpts{Name: "intumwa_queue_redeliveries_total",
			Help: "Messages queued again: due retries, and messages the queue had lost."}),
		Refunds: auto.NewCounter(prometheus.CounterOpts{Name: "intumwa_messages_refunded_total",
			Help: "Refunded messages."}),
		LowBalances: auto.NewCounter(prometheus.CounterOpts{Name: "intumwa_low_balances_total",
			Help: "Balances that fell below a threshold."}),
	}
	for _, kind := range [...]retention.Purge{retention.PurgeMessages, retention.PurgeBodies, retention.PurgeNumbers} {
		// from the start, so that the first counts as an increase
		m.Purged.WithLabelValues(string(kind))
	}
	for _, lane := range LaneNames {
		m.Released.WithLabelValues(lane)
		m.Scheduled.WithLabelValues(lane)
	}
	return m
}

// Expect creates rare series early, so that their first event counts as an increase.
func (m *Metrics) Expect(carrier string) {
	for _, kind := range [...]string{UnmatchedKind, InboundKind} {
		m.Throttled.WithLabelValues(carrier, kind)
	}
	m.SetAside.WithLabelValues(carrier)
}

// The kinds of throttled deliveries.
const (
	UnmatchedKind = "unmatched"
	InboundKind   = "inbound"
)

// The labels of lanes and of ways to confirm, by their values.
var (
	LaneNames    = [...]string{"single", "batch"}
	ConfirmNames = [...]string{setup.ConfirmByReceipt: "receipt", setup.ConfirmBySubmit: "submit"}
)
