package dashboard

import (
	"strings"
	"time"

	"intumwa/exports"
	"intumwa/messages"
	"intumwa/messages/statistics"
)

// percentiles are those that tables and files show.
var percentiles = []float64{.5, .95, .99}

// times returns the percentiles of times; empty if there are none.
func (v *visit) times(t statistics.Times) string {
	var list []string
	for _, share := range percentiles {
		within, over, ok := t.Percentile(share)
		if !ok {
			return ""
		}
		text := v.took(within)
		if over {
			text = v.lang.T("quality.over", text)
		}
		list = append(list, strings.ReplaceAll(text, " ", "\u00a0")) // lines break between times only
	}
	return strings.Join(list, " / ")
}

// took returns a duration in its largest unit: the bounds of buckets are whole in it.
func (v *visit) took(d time.Duration) string {
	switch {
	case d < time.Second:
		return v.lang.T("quality.ms", d.Milliseconds())
	case d < time.Minute:
		return v.lang.T("quality.s", int64(d/time.Second))
	case d < time.Hour:
		return v.lang.T("quality.min", int64(d/time.Minute))
	}
	return v.lang.T("quality.h", int64(d/time.Hour))
}

// reasonWords returns why messages failed, what to do, and whether they are charged; and the carrier's own words, if it
// said so.
func (v *visit) reasonWords(reason string) (text, carriers string) {
	text, carriers = exports.Describe(v.lang, reason)
	switch {
	case reason == statistics.Others:
		return text, ""
	case reason == messages.ReasonCancelled, v.d.opts.Refund.Pays(messages.Settled{Reason: reason, Unsubmitted: true}):
		return text + " " + v.lang.T("reason.rule.refunded"), carriers
	}
	return text + " " + v.lang.T("reason.rule.charged"), carriers
}
