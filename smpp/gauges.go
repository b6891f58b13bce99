package smpp

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// gauges reads the state of the running binds at each scrape; the hot path
// keeps no gauge.
type gauges struct{ *Metrics }

func gauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName("intumwa", "smpp", name), help,
		append(linkLabels[:2:2], labels...), nil)
}

var (
	gaugeState      = gauge("session_state", "1 for the link's state, else 0.", "state")
	gaugeBound      = gauge("sessions_bound", "Sessions bound.")
	gaugeConfigured = gauge("sessions_configured", "Sessions of the link.")
	gaugeStart      = gauge("session_start_timestamp_seconds", "When the link was bound.")
	gaugeWindow     = gauge("window_size", "Window.")
	gaugeInFlight   = gauge("window_in_flight", "Window slots in use.")
	gaugeWaiting    = gauge("window_waiting", "Submits that wait for the window or tps.")
	gaugeUnknown    = gauge("submit_unknown_outcome", "submit_sm that are overdue now.")
	gaugePace       = gauge("pace_limit_per_second", "Configured tps; 0: no limit.")
	gaugePaused     = gauge("link_paused", "1 while an operator or the dispatcher has paused the link.")
	gaugeDeliveries = gauge("deliveries_unanswered", "deliver_sm not answered yet.")
	gaugeLastPDU    = gauge("last_pdu_timestamp_seconds", "When the last PDU was received.")
	gaugeCert       = gauge("tls_cert_expiry_timestamp_seconds", "When the carrier's TLS certificate expires.")
	allGauges       = []*prometheus.Desc{gaugeState, gaugeBound, gaugeConfigured, gaugeStart, gaugeWindow, gaugeInFlight,
		gaugeWaiting, gaugeUnknown, gaugePace, gaugePaused, gaugeDeliveries, gaugeLastPDU, gaugeCert}
)

func (g gauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range allGauges {
		out <- d
	}
}

func (g gauges) Collect(out chan<- prometheus.Metric) {
	g.mu.Lock()
	binds := make([]*Bind, 0, len(g.running))
	for b := range g.running {
		binds = append(binds, b)
	}
	g.mu.Unlock()
	for _, b := range binds {
		b.collect(out)
	}
}

func (b *Bind) collect(out chan<- prometheus.Metric) {
	snap := b.Snapshot()
	show := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v,
			append([]string{snap.Carrier, snap.Name}, labels...)...)
	}
	for _, state := range States {
		show(gaugeState, bit(state == snap.State), state.String())
	}
	show(gaugeBound, float64(snap.SessionsBound))
	show(gaugeConfigured, float64(snap.Sessions))
	show(gaugeWindow, float64(snap.Window))
	show(gaugeInFlight, float64(snap.InFlight))
	show(gaugeWaiting, float64(snap.Waiting))
	show(gaugeUnknown, float64(snap.Overdue))
	show(gaugePace, snap.TPS)
	show(gaugePaused, bit(snap.State == Paused))
	show(gaugeDeliveries, float64(snap.Deliveries))
	if !snap.BoundSince.IsZero() {
		show(gaugeStart, seconds(snap.BoundSince))
	}
	if !snap.LastPDU.IsZero() {
		show(gaugeLastPDU, seconds(snap.LastPDU))
	}
	if expiry := b.certificateExpiry(); !expiry.IsZero() {
		show(gaugeCert, seconds(expiry))
	}
}

// certificateExpiry is the earliest end of the peer's certificates, zero
// without TLS.
func (b *Bind) certificateExpiry() (first time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.sessions {
		if !s.cert.IsZero() && (first.IsZero() || s.cert.Before(first)) {
			first = s.cert
		}
	}
	return first
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
