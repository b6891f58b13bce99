package smpp

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestServerMetrics: the metrics of served sessions have their own names and no label that an outsider can fill.
func TestServerMetrics(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	d := newDoor(t, func(d *door) {
		NewMetrics(reg) // both in one process
		d.opts.Metrics = NewServerMetrics(reg)
	})
	for _, name := range []string{"nobody", "\xff", strings.Repeat("x", 200)} {
		p := d.connect()
		p.send(rawTransceiver, 0, 1, bindBody(name, "secret", 0x34)...)
		p.expect(rawTransceiver | 0x80000000)
		p.expectClose()
		if d.end() == nil {
			t.Error("no error")
		}
	}
	p, ours := d.bindAs(rawTransceiver, 0x34)
	p.send(rawSubmit, 0, 1, deliverBody(0, 0, "x")...)
	p.expect(rawSubmitResp)
	if err := ours.Deliver(t.Context(), sample(), func(Result) {}); err != nil {
		t.Fatal(err)
	}
	p.send(rawDeliverResp, 0x12345678, p.expect(rawDeliver).sequence, 0)
	p.send(0x55555555, 0x87654321, 3)
	p.expect(rawGenericNack)
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]float64{}
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "intumwa_smpp_server_") {
			continue
		}
		for _, m := range family.GetMetric() {
			key := strings.TrimPrefix(family.GetName(), "intumwa_smpp_server_")
			for _, l := range m.GetLabel() {
				if !slices.Contains([]string{"direction", "command", "status", "result", "reason"}, l.GetName()) {
					t.Errorf("%s has the label %s", family.GetName(), l.GetName())
				}
				key += " " + l.GetValue()
			}
			series[key] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	for key, want := range map[string]float64{
		"bind_attempts_total rejected ESME_RINVPASWD": 3, "bind_attempts_total ok ESME_ROK": 1, "sessions_bound": 1,
		"pdus_total submit_sm in ESME_ROK": 1, "pdus_total submit_sm_resp out ESME_ROK": 1,
		"pdus_total deliver_sm out ESME_ROK":       1,
		"pdus_total deliver_sm_resp in 0x12345678": 1, "pdus_total unknown in ESME_ROK": 1,
		"deliver_results_total rejected": 1,
	} {
		if series[key] != want {
			t.Errorf("%s is %v, want %v", key, series[key], want)
		}
	}
}
