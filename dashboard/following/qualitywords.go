package following

import (
	"strings"
	"time"

	"intumwa/dashboard/web"
	"intumwa/messages"
	"intumwa/messages/statistics"
	"intumwa/reports/exports"
)

// percentiles are those that tables and files show.
var percentiles = []float64{.5, .95, .99}

// times returns the percentiles of times; empty if there are none.
func times(v *web.Visit, t statistics.Times) string {
	var list []string
	for _, share := range percentiles {
		within, over, ok := t.Percentile(share)
		if !ok {
			return ""
		}
		text := took(v, within)
		if over {
			text = v.Lang.T("quality.over", text)
		}
		list = append(list, strings.ReplaceAll(text, " ", "\u00a0")) // lines break between times only
	}
	return strings.Join(list, " / ")
}

// took returns a duration in its largest unit: the bounds of buckets are whole in it.
func took(v *web.Visit, d time.Duration) string {
	switch {
	case d < time.Second:
		return v.Lang.T("quality.ms", d.Milliseconds())
	case d < time.Minute:
		return v.Lang.T("quality.s", int64(d/time.Second))
	case d < time.Hour:
		return v.Lang.T("quality.min", int64(d/time.Minute))
	}
	return v.Lang.T("quality.h", int64(d/time.Hour))
}

// reasonWords returns why messages failed, what to do, and whether they are charged; and the carrier's own words, if it
// said so.
func (ps *Pages) reasonWords(v *web.Visit, reason string) (text, carriers string) {
	text, carriers = exports.Describe(v.Lang, reason)
	switch {
	case reason == statistics.Others:
		return text, ""
	case reason == messages.ReasonCancelled, ps.Refund.Pays(messages.Settled{Reason: reason, Unsubmitted: true}):
		return text + " " + v.Lang.T("reason.rule.refunded"), carriers
	}
	return text + " " + v.Lang.T("reason.rule.charged"), carriers
}

// channelTexts maps the channels to their texts.
var channelTexts = map[string]string{"api": "quality.channel.api", "page": "quality.channel.page",
	"smpp": "quality.channel.smpp", "kannel": "quality.channel.kannel", "keyword": "quality.channel.keyword"}
