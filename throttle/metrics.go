package throttle

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	refused prometheus.Counter
	local   prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) metrics {
	m := metrics{
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "intumwa_rate_limited_total",
			Help: "Requests refused because their user sent too many in a window.",
		}),
		local: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "intumwa_rate_limit_local_total",
			Help: "Requests counted by this instance alone because Redis did not answer.",
		}),
	}
	if registerer != nil {
		registerer.MustRegister(m.refused, m.local)
	}
	return m
}
