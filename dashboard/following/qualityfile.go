package following

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"intumwa/dashboard/web"
	"intumwa/messages/statistics"
	"intumwa/messages/submission"
	"intumwa/texts"
)

// qualityFileDays is how many days of a file are read at a time, if they have not too many rows.
const qualityFileDays = 31

// ExportQuality is GET /quality.csv.
func (ps *Pages) ExportQuality(v *web.Visit, t web.Tenant) error {
	_, filter := qualityOf(v, "/quality", statistics.QualityFilter{Company: t.CompanyID()})
	if !v.Form().OK() {
		return ps.Quality(v, t)
	}
	return ps.qualityFile(v, t, filter, nil, nil)
}

// ExportAdminQuality is GET /admin/quality.csv.
func (ps *Pages) ExportAdminQuality(v *web.Visit) error {
	of, company, err := ps.companyFilter(v)
	if err != nil {
		return err
	}
	_, filter := qualityOf(v, "/admin/quality", of)
	if !v.Form().OK() {
		return ps.AdminQuality(v)
	}
	t := web.Tenant{User: v.Session.User}
	if company != nil {
		t.Company = *company
	}
	return ps.qualityFile(v, t, filter, []string{"sheet.number"}, []statistics.Dimension{statistics.ByCompany})
}

// qualityFile responds with a file of all counts by day and every property, the oldest first, and first by more
// dimensions with their heads.
func (ps *Pages) qualityFile(v *web.Visit, t web.Tenant, filter statistics.QualityFilter, moreHeads []string,
	more []statistics.Dimension) error {
	heads := v.Lang.Texts(append(append([]string{"charts.day"}, moreHeads...), "charts.carrier", "csv.sender",
		"quality.kind", "quality.channel", "costcenter.title", "quality.messages",
		"outcome.sent", "outcome.failed", "quality.expired", "quality.noreceipt", "quality.waiting", "csv.segments",
		"quality.credits", "quality.success")...)
	for _, stage := range []string{"quality.tocarrier", "quality.toreceipt"} {
		for _, share := range percentiles {
			heads = append(heads, v.Lang.T("quality.csv.ms", v.Lang.T(stage), "p"+strconv.Itoa(int(share*100))))
		}
	}
	heads = append(heads, v.Lang.T("quality.reasons"))
	by := append(append([]statistics.Dimension{statistics.ByDay}, more...), statistics.ByCarrier, statistics.BySender,
		statistics.ByKind, statistics.ByChannel, statistics.ByCostCenter)
	return v.Export(t, "quality", heads, func(row func(...string) error) error {
		return ps.eachQuality(v, filter, by, func(q *statistics.Quality) error {
			cells := []string{q.Day.Format(time.DateOnly)}
			if more != nil {
				cells = append(cells, strconv.FormatInt(int64(q.Company), 10))
			}
			cells = append(cells, texts.Cell(q.Carrier), texts.Cell(q.Sender), v.Lang.T(texts.MessageKinds[q.Kind]),
				v.Lang.T(channelTexts[q.Channel]), texts.Cell(q.CostCenter))
			for _, n := range []int64{q.Accepted(), q.Sent, q.Failed, q.Because(submission.ReasonExpired), q.AtCarrier,
				q.Waiting, q.Segments, q.Credits} {
				cells = append(cells, strconv.FormatInt(n, 10))
			}
			return row(append(cells, qualityCells(v, q)...)...)
		})
	})
}

// qualityCells returns the last cells of a row: the rate, the times in milliseconds, and the reasons.
func qualityCells(v *web.Visit, q *statistics.Quality) []string {
	rate := ""
	if thousandths, ok := q.Success(); ok {
		rate = v.Lang.Decimal(thousandths)
	}
	cells := []string{rate}
	for _, times := range []statistics.Times{q.ToCarrier, q.ToReceipt} {
		for _, share := range percentiles {
			within, over, ok := times.Percentile(share)
			text := ""
			if ok {
				text = strconv.FormatInt(within.Milliseconds(), 10)
			}
			if over {
				text = v.Lang.T("quality.over", text)
			}
			cells = append(cells, text)
		}
	}
	var reasons []string
	for _, r := range q.Reasons {
		reasons = append(reasons, r.Reason+": "+strconv.FormatInt(r.Messages, 10))
	}
	return append(cells, texts.Cell(strings.Join(reasons, "; ")))
}

// eachQuality reads the counts of the filter's days in parts, each in a turn of its own.
func (ps *Pages) eachQuality(v *web.Visit, filter statistics.QualityFilter, by []statistics.Dimension,
	do func(*statistics.Quality) error) error {
	size, last := qualityFileDays, filter.Last
	for day := filter.First; !day.After(last); {
		filter.First, filter.Last = day, day.AddDate(0, 0, size-1)
		if filter.Last.After(last) {
			filter.Last = last
		}
		var counted []statistics.Quality
		err := v.InTurn(func() (err error) {
			counted, err = ps.Deps.Statistics.Quality(v.Ctx(), filter, by...)
			return err
		})
		if errors.Is(err, statistics.ErrTooManyRows) && size > 1 {
			size = 1
			continue
		}
		if err != nil {
			return err
		}
		for i := range counted {
			if err := do(&counted[i]); err != nil {
				return err
			}
		}
		day = day.AddDate(0, 0, size)
	}
	return nil
}
