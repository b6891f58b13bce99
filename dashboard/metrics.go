package dashboard

import (
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "intumwa_dashboard_requests_total",
			Help: "Requests to the dashboard by route, method and status code.",
		}, []string{"route", "method", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "intumwa_dashboard_request_seconds",
			Help:    "Time to answer a request to the dashboard, by route.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
		}, []string{"route"}),
	}
	if registerer != nil {
		registerer.MustRegister(m.requests, m.seconds)
	}
	return m
}

// observe counts and times. Strangers' paths and methods are one each.
func (m *metrics) observe(c *gin.Context) {
	start := time.Now()
	c.Next()
	route, method := c.FullPath(), c.Request.Method
	if route == "" {
		route, method = "none", "any"
	}
	m.requests.WithLabelValues(route, method, strconv.Itoa(c.Writer.Status())).Inc()
	if lasts(c) {
		return
	}
	m.seconds.WithLabelValues(route).Observe(time.Since(start).Seconds())
}
