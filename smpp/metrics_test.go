package smpp

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// series returns every series of the registry as name{label=value,…}, with its value or,
// for a histogram, its count.
func series(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				if l.GetName() != "carrier" && l.GetName() != "link" {
					labels = append(labels, l.GetName()+"="+l.GetValue())
				}
			}
			name := fmt.Sprintf("%s{%s}", f.GetName(), strings.Join(labels, ","))
			switch {
			case m.GetCounter() != nil:
				all[name] += m.GetCounter().GetValue()
			case m.GetGauge() != nil:
				all[name] += m.GetGauge().GetValue()
			default:
				all[name] += float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return all
}

// counted is a counter's value.
func counted(t *testing.T, c prometheus.Counter) float64 {
	t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(c)
	for _, n := range series(t, reg) {
		return n
	}
	return 0
}

// binds is the number of successful binds.
func binds(t *testing.T, b *Bind) float64 {
	t.Helper()
	return counted(t, b.metrics.binds.WithLabelValues(bindOK, StatusOK.label()))
}

// TestVendorStatuses: the ten most frequent statuses of vendors have labels of their own, and no more, whatever comes.
func TestVendorStatuses(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	m := NewMetrics(reg).bind("c", "l")
	send := func(s Status, times int) {
		for range times {
			m.received(cmdSubmitSM|responseBit, s)
		}
	}
	statuses := func() (list []string) {
		for name, n := range series(t, reg) {
			if _, status, ok := strings.Cut(name, "intumwa_smpp_pdus_total{command=submit_sm_resp,direction=in,status="); ok &&
				n > 0 {
				list = append(list, strings.TrimSuffix(status, "}"))
			}
		}
		slices.Sort(list)
		return list
	}
	for s := range Status(10) {
		send(0x400+s, 5+int(s))
	}
	send(0x500, 10)
	want := []string{"0x00000400", "0x00000401", "0x00000402", "0x00000403", "0x00000404", "0x00000405", "0x00000406",
		"0x00000407", "0x00000408", "0x00000409", "other"}
	if got := statuses(); !slices.Equal(got, want) {
		t.Errorf("ten and a rare one: %v", got)
	}
	send(0x500, 1)
	if got := statuses(); !slices.Equal(got, append(want[1:10:10], "0x00000500", "other")) {
		t.Errorf("it has become frequent: %v", got)
	}
	for s := range Status(20_000) {
		send(0x10000+s, 1)
	}
	if got := statuses(); len(got) != 11 {
		t.Errorf("a broken carrier: %v", got)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewPedanticRegistry()
	b, p, stop := newBound(t, func(o *Options) { o.Metrics = NewMetrics(reg); o.TPS = 1000 })
	first, second := submit(t, b), submit(t, b)
	p.accepted(p.expect(rawSubmit), "1")
	p.send(rawSubmitResp, 0x4FF, p.expect(rawSubmit).sequence) // a vendor status
	result(t, first)
	result(t, second)
	p.send(0x77, 0, 1)
	p.expect(rawGenericNack)
	p.send(rawDeliver, 0, 1, deliverBody(4, 0, receiptText)...)
	p.expect(rawDeliverResp)

	got := series(t, reg)
	pdus := maps.Clone(got)
	maps.DeleteFunc(pdus, func(name string, _ float64) bool { return !strings.HasPrefix(name, "intumwa_smpp_pdus_total") })
	want := map[string]float64{
		"command=bind_transceiver,direction=out,status=ESME_ROK":     1,
		"command=bind_transceiver_resp,direction=in,status=ESME_ROK": 1,
		"command=deliver_sm,direction=in,status=ESME_ROK":            1,
		"command=deliver_sm_resp,direction=out,status=ESME_ROK":      1,
		"command=generic_nack,direction=out,status=ESME_RINVCMDID":   1,
		"command=submit_sm,direction=out,status=ESME_ROK":            2,
		"command=submit_sm_resp,direction=in,status=ESME_ROK":        1,
		"command=submit_sm_resp,direction=in,status=0x000004FF":      1,
		"command=unknown,direction=in,status=ESME_ROK":               1,
	}
	for labels, n := range want {
		if name := "intumwa_smpp_pdus_total{" + labels + "}"; pdus[name] != n {
			t.Errorf("%s is %v, want %v", name, pdus[name], n)
		}
	}
	if len(pdus) != len(want) {
		t.Errorf("series %v", pdus)
	}
	for name, n := range map[string]float64{
		"intumwa_smpp_session_state{state=bound}":                     1,
		"intumwa_smpp_session_state{state=down}":                      0,
		"intumwa_smpp_sessions_bound{}":                               1,
		"intumwa_smpp_pace_limit_per_second{}":                        1000,
		"intumwa_smpp_window_size{}":                                  DefaultWindow,
		"intumwa_smpp_window_in_flight{}":                             0,
		"intumwa_smpp_submit_duration_seconds{}":                      2,
		"intumwa_smpp_submit_results_total{result=accepted}":          1,
		"intumwa_smpp_submit_results_total{result=rejected}":          1,
		"intumwa_smpp_bind_attempts_total{result=ok,status=ESME_ROK}": 1,
	} {
		if v, there := got[name]; !there || v != n {
			t.Errorf("%s is %v (%v), want %v", name, v, there, n)
		}
	}
	serving := p.serve(p.polite)
	stop()
	serving.Wait()
	if got := series(t, reg); got["intumwa_smpp_session_closed_total{reason=shutdown}"] != 1 {
		t.Errorf("after the end: %v", got)
	}
}
