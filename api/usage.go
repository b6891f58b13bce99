package api

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"intumwa/internal/postgres"
	"intumwa/messages/statistics"
	"intumwa/sms"
)

// usageDays is the longest period of a usage report.
const usageDays = 400

// usageView is what became of a company's messages in a period.
type usageView struct {
	From        string      `json:"from"`
	To          string      `json:"to"`
	Provisional bool        `json:"provisional"` // it may still change: a message is pending, or the last day is not over
	Data        []usageLine `json:"data"`
}

// usageLine is the messages of one day or month, by the properties that were asked for; the others are missing.
type usageLine struct {
	Day        *string `json:"day,omitempty"`
	Month      *string `json:"month,omitempty"`
	Carrier    *string `json:"carrier,omitempty"`
	Sender     *string `json:"sender,omitempty"`
	CostCenter *string `json:"cost_center,omitempty"` // "": none
	Accepted   int64   `json:"accepted"`
	Sent       int64   `json:"sent"`
	Failed     int64   `json:"failed"`
	Pending    int64   `json:"pending"`
	Segments   int64   `json:"segments"`
	Credits    int64   `json:"credits"`
}

// usage is GET /v1/usage.
func (a *API) usage(c *gin.Context) (usageView, error) {
	q := readParameters(c, "from", "to", "by")
	first, last := q.day("from", usageFromRequired, usageFromInvalid), q.day("to", usageToRequired, usageToInvalid)
	if !first.IsZero() && !last.IsZero() && (last.Before(first) || !last.Before(first.AddDate(0, 0, usageDays))) {
		q.add(usagePeriodInvalid)
	}
	by := q.by()
	if err := q.first(); err != nil {
		return usageView{}, err
	}
	counted, err := a.Statistics.Quality(c.Request.Context(), statistics.QualityFilter{Company: companyID(c), First: first,
		Last: last}, by...)
	if errors.Is(err, statistics.ErrTooManyRows) {
		q.add(usageTooLong)
		err = q.first()
	}
	over := time.Date(last.Year(), last.Month(), last.Day()+1, 0, 0, 0, 0, sms.Burundi)
	view := usageView{From: first.Format(time.DateOnly), To: last.Format(time.DateOnly),
		Data: make([]usageLine, len(counted)), Provisional: postgres.Now().Before(over)}
	for i := range counted {
		n := &counted[i]
		view.Provisional = view.Provisional || n.Pending() > 0
		view.Data[i] = usageLine{Accepted: n.Accepted(), Sent: n.Sent, Failed: n.Failed, Pending: n.Pending(),
			Segments: n.Segments, Credits: n.Credits}
		view.Data[i].name(n, by)
	}
	return view, err
}

// name sets the properties by which a line counts.
func (l *usageLine) name(n *statistics.Quality, by []statistics.Dimension) {
	for _, d := range by {
		switch d {
		case statistics.ByDay:
			l.Day = new(n.Day.Format(time.DateOnly))
		case statistics.ByMonth:
			l.Month = new(n.Day.Format("2006-01"))
		case statistics.ByCarrier:
			l.Carrier = &n.Carrier
		case statistics.BySender:
			l.Sender = &n.Sender
		case statistics.ByCostCenter:
			l.CostCenter = &n.CostCenter
		}
	}
}

// day reads a required day.
func (q *query) day(name string, missing, wrong *refusal) time.Time {
	if !q.Has(name) {
		q.add(missing)
		return time.Time{}
	}
	day, err := time.Parse(time.DateOnly, q.Get(name))
	if err != nil || day.Year() < 1 {
		q.add(wrong)
		return time.Time{}
	}
	return day
}

// by reads the properties of a usage report: day, unless by says month, then others in any order, each once.
func (q *query) by() []statistics.Dimension {
	text := q.Get("by")
	if text == "" { // missing, or refused as empty
		return []statistics.Dimension{statistics.ByDay}
	}
	var by []statistics.Dimension
	spans, wrong := 0, false
	for name := range strings.SplitSeq(text, ",") {
		d := statistics.Dimension(name)
		wrong = wrong || !slices.Contains(usageBy, d) || slices.Contains(by, d)
		if by = append(by, d); d == statistics.ByDay || d == statistics.ByMonth {
			spans++
		}
	}
	if wrong || spans != 1 {
		q.add(usageByInvalid)
	}
	return by
}

// usageBy are the properties of a usage report.
var usageBy = []statistics.Dimension{statistics.ByDay, statistics.ByMonth, statistics.ByCarrier, statistics.BySender,
	statistics.ByCostCenter}
