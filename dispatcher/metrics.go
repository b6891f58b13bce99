package dispatcher

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"intumwa/messages/retention"
)

type metrics struct {
	depth, oldest   *prometheus.GaugeVec   // carrier, lane
	due             *prometheus.GaugeVec   // carrier, lane
	info            *prometheus.GaugeVec   // carrier, confirm
	retired         *prometheus.GaugeVec   // carrier
	matchedLate     *prometheus.CounterVec // carrier
	tasks           *prometheus.GaugeVec   // task
	receipts        *prometheus.CounterVec // carrier, link, outcome
	unknownStates   *prometheus.CounterVec // carrier, state
	refusedReceipts *prometheus.CounterVec // carrier
	inbound         *prometheus.CounterVec // carrier
	throttled       *prometheus.CounterVec // carrier, kind
	setAside        *prometheus.CounterVec // carrier
	final           *prometheus.CounterVec // carrier, status, reason_class
	endToEnd        *prometheus.HistogramVec
	settleTime      *prometheus.HistogramVec
	stale           *prometheus.CounterVec
	purged          *prometheus.CounterVec // kind
	purgeBehind     *prometheus.GaugeVec   // kind
	direct          *prometheus.CounterVec // carrier, lane
	resent          *prometheus.CounterVec // carrier
	rerouted        *prometheus.CounterVec // carrier
	second          *prometheus.CounterVec // carrier, second, reason
	breakerOpen     *prometheus.GaugeVec   // carrier, link
	sendersHeld     *prometheus.GaugeVec   // carrier, link
	givenUp         *prometheus.CounterVec // carrier, link
	released        *prometheus.CounterVec // lane
	scheduled       *prometheus.GaugeVec   // lane
	scheduledLate   prometheus.Gauge
	redelivered     prometheus.Counter
	refunds         prometheus.Counter
	lowBalances     prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := promauto.With(reg)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return auto.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return auto.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		depth: gauge("intumwa_queue_depth",
			"Messages that no carrier has yet.", "carrier", "lane"),
		oldest: gauge("intumwa_queue_oldest_age_seconds",
			"Age of the oldest message that no carrier has yet, from acceptance or send_at.", "carrier", "lane"),
		due: gauge("intumwa_queue_due_age_seconds",
			"How long the oldest due message has waited, not counting pauses between attempts.", "carrier", "lane"),
		info: gauge("intumwa_carrier_info",
			"1 for each configured carrier.", "carrier", "confirm"),
		retired: gauge("intumwa_carrier_retired",
			"1 for a configured carrier that an operator has retired, else 0.", "carrier"),
		unknownStates: counter("intumwa_receipt_unknown_states_total",
			"Receipts with a state that has no meaning (receipt_states), by state; other: the 21st and further ones, and what is no word.", "carrier", "state"),
		matchedLate: counter("intumwa_receipts_matched_late_total",
			"Receipts that came before their submit_sm_resp.", "carrier"),
		tasks: gauge("intumwa_task_last_success_timestamp_seconds",
			"When this process started, or last did a task that one dispatcher does for all. Take the maximum.", "task"),
		receipts:        counter("intumwa_receipts_total", "Receipts.", "carrier", "link", "outcome"),
		refusedReceipts: counter("intumwa_receipts_refused_total", "Receipts refused because they could not be stored.", "carrier"),
		inbound:         counter("intumwa_inbound_messages_total", "MOs.", "carrier"),
		throttled: counter("intumwa_deliveries_throttled_total",
			"Unmatched receipts and MOs (inbound) refused because they exceed the carrier's hourly limit.", "carrier", "kind"),
		setAside: counter("intumwa_deliveries_set_aside_total",
			"Receipts and MOs that the database can never store: acknowledged and dropped.", "carrier"),
		final: counter("intumwa_messages_final_total", "Messages that became sent or failed.", "carrier", "status", "reason_class"),
		endToEnd: auto.NewHistogramVec(prometheus.HistogramOpts{Name: "intumwa_message_end_to_end_seconds",
			Help:    "Time from acceptance, or send_at, to sent or failed.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200, 43200, 90000}}, []string{"carrier"}),
		settleTime: auto.NewHistogramVec(prometheus.HistogramOpts{Name: "intumwa_settle_duration_seconds",
			Help:    "Duration of a settling transaction.",
			Buckets: []float64{.0005, .001, .002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5}}, []string{"carrier"}),
		stale:  counter("intumwa_queue_stale_entries_total", "Queue entries of messages that no longer wait.", "carrier"),
		direct: counter("intumwa_queue_bypassed_total", "Messages taken from the database because the queue failed.", "carrier", "lane"),
		resent: counter("intumwa_segments_resent_total",
			"Segments sent again after a lost submit_sm_resp: each may arrive twice.", "carrier"),
		rerouted: counter("intumwa_messages_rerouted_total", "Messages moved to another carrier because theirs was down or removed.", "carrier"),
		second: counter("intumwa_messages_sent_on_total",
			"Messages that went to the second carrier.", "carrier", "second", "reason"),
		breakerOpen: gauge("intumwa_link_breaker_open",
			"1 while the breaker has stopped the link: the carrier is bound and accepts nothing.", "carrier", "link"),
		sendersHeld: gauge("intumwa_link_senders_held",
			"Senders whose messages wait because the carrier refuses them all.", "carrier", "link"),
		givenUp: counter("intumwa_link_given_up_total",
			"Links handed to another dispatcher because the carrier was unreachable.", "carrier", "link"),
		purged: counter("intumwa_purged_total", "Messages and texts (bodies) deleted, numbers obscured.", "kind"),
		purgeBehind: gauge("intumwa_purge_behind_seconds",
			"How long the deletion of the oldest message, text or number is overdue.", "kind"),
		released: counter("intumwa_scheduled_released_total", "Scheduled messages released at their time.", "lane"),
		scheduled: gauge("intumwa_scheduled_messages",
			"Scheduled messages that are not due yet, counted every few minutes.", "lane"),
		scheduledLate: auto.NewGauge(prometheus.GaugeOpts{Name: "intumwa_scheduled_late_seconds",
			Help: "How late the oldest due scheduled message is."}),
		redelivered: auto.NewCounter(prometheus.CounterOpts{Name: "intumwa_queue_redeliveries_total",
			Help: "Messages queued again: due retries, and messages the queue had lost."}),
		refunds: auto.NewCounter(prometheus.CounterOpts{Name: "intumwa_messages_refunded_total",
			Help: "Refunded messages."}),
		lowBalances: auto.NewCounter(prometheus.CounterOpts{Name: "intumwa_low_balances_total",
			Help: "Balances that fell below a threshold."}),
	}
	for _, kind := range [...]retention.Purge{retention.PurgeMessages, retention.PurgeBodies, retention.PurgeNumbers} { // from the start, so that the first counts as an increase
		m.purged.WithLabelValues(string(kind))
	}
	for _, lane := range laneNames {
		m.released.WithLabelValues(lane)
		m.scheduled.WithLabelValues(lane)
	}
	return m
}

// expect creates rare series early, so that their first event counts as an increase.
func (m *metrics) expect(carrier string) {
	for _, kind := range [...]string{unmatchedKind, inboundKind} {
		m.throttled.WithLabelValues(carrier, kind)
	}
	m.setAside.WithLabelValues(carrier)
}

// The kinds of throttled deliveries.
const (
	unmatchedKind = "unmatched"
	inboundKind   = "inbound"
)

var (
	laneNames    = [...]string{"single", "batch"}
	confirmNames = [...]string{ConfirmByReceipt: "receipt", ConfirmBySubmit: "submit"}
)
