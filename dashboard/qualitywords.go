package dashboard

import (
	"strings"
	"time"

	"intumwa/messages"
	"intumwa/messages/submission"
)

// percentiles are those that tables and files show.
var percentiles = []float64{.5, .95, .99}

// times returns the percentiles of times; empty if there are none.
func (v *visit) times(t messages.Times) string {
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
		list = append(list, text)
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

// reasonWords returns why messages failed in plain words, and the carrier's own words, if it said so.
func (v *visit) reasonWords(reason string) (text, code string) {
	state, _, _ := strings.Cut(reason, " ")
	switch {
	case reason == messages.Others:
		return v.lang.T("quality.reason.others"), ""
	case strings.HasPrefix(reason, "ESME_"):
		return v.lang.T("quality.reason.refused"), reason
	case strings.HasPrefix(reason, "smpp: "):
		return v.lang.T("quality.reason.unsendable"), ""
	case reasonStates[state] != "":
		return v.lang.T(reasonStates[state]), reason
	}
	if text = v.reason(reason); text != reason {
		return text, ""
	}
	return v.lang.T("quality.reason.reported"), reason
}

// reasonStates are the texts of a receipt's states.
var reasonStates = map[string]string{submission.Undeliv: "quality.reason.undeliv", "REJECTD": "quality.reason.rejectd", "EXPIRED": "quality.reason.expired", "DELETED": "quality.reason.deleted"}
