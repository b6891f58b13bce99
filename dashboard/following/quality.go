package following

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"time"

	"intumwa/accounts"
	"intumwa/dashboard/web"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/messages/statistics"
	"intumwa/messages/submission"
	"intumwa/sms"
	"intumwa/texts"
)

const (
	qualityDays   = 30 // of the page without a period
	qualityByDay  = 92 // days that are shown one by one; a longer period is shown by month
	qualityYears  = 5  // of the longest period
	qualityLabels = 7  // below the plot
)

// qualityPage says what became of messages: of a company, or for administrators of all.
type qualityPage struct {
	Admin        bool
	Path, Export string
	Kinds        []web.Option
	Channels     []web.Option
	First, Last  time.Time
	ByMonth      bool
	Total        qualityRow
	Days         []qualityRow // or months, the newest first
	Carriers     []qualityRow // the one with most messages first
	Reasons      []qualityReason
	Others       int // reasons that the table lacks
	Plot         plot
	Company      *accounts.Company // the one that an administrator looks at; nil: all
}

// qualityRow is a row of a table.
type qualityRow struct {
	*statistics.Quality

	Name      string // of the day, month or carrier
	Link      string // empty: none
	Expired   int64
	Rate      string
	ToCarrier string // p50, p95 and p99
	ToReceipt string
}

// qualityReason is a reason for which messages failed.
type qualityReason struct {
	Text, Code string // Code: the carrier's words; empty: the reason is ours
	Messages   int64
	Share      string
}

// Quality is GET /quality.
func (ps *Pages) Quality(v *web.Visit, t web.Tenant) error {
	data, filter := qualityOf(v, "/quality", statistics.QualityFilter{Company: t.CompanyID()})
	return v.Page(ps.fillQuality(v, &data, filter), "quality", data)
}

// AdminQuality is GET /admin/quality: all companies, or the one of the parameter company.
func (ps *Pages) AdminQuality(v *web.Visit) error {
	of, company, err := ps.companyFilter(v)
	if err != nil {
		return err
	}
	data, filter := qualityOf(v, "/admin/quality", of)
	data.Admin, data.Company = true, company
	return v.Page(ps.fillQuality(v, &data, filter), "quality", data)
}

// companyFilter reads an administrator's parameter company, the number of one; company is nil for all.
func (ps *Pages) companyFilter(v *web.Visit) (filter statistics.QualityFilter, company *accounts.Company, err error) {
	f := v.Parameters("company")
	text := f.Value("company")
	if text == "" {
		return statistics.QualityFilter{AllCompanies: true}, nil, nil
	}
	id, _ := strconv.ParseInt(text, 10, 64) // 0, of a text, is no company
	found, err := ps.Deps.Companies.CompanyByID(v.Ctx(), id)
	switch {
	case errors.Is(err, accounts.ErrNotFound):
		f.Refuse("company", "acts.company.wrong")
		return filter, nil, nil
	case err != nil:
		return filter, nil, err
	}
	return statistics.QualityFilter{Company: sms.CompanyID(id)}, &found, nil
}

// qualityOf reads the parameters of a page or a file.
func qualityOf(v *web.Visit, path string, of statistics.QualityFilter) (data qualityPage,
	filter statistics.QualityFilter) {
	f := v.Parameters("from", "to", "carrier", "sender", "cost_center", "kind", "channel")
	filter = of
	filter.Carrier, filter.Sender, filter.CostCenter = f.Value("carrier"), f.Value("sender"), f.Value("cost_center")
	data.Path, data.Export = path, f.Address(path+".csv")
	data.Kinds, data.Channels = choices(v, statistics.Kinds, texts.MessageKinds),
		choices(v, messages.Channels, channelTexts)
	if kind := f.Value("kind"); web.Among(data.Kinds, kind) {
		filter.Kind = kind
	}
	if channel := f.Value("channel"); web.Among(data.Channels, channel) {
		filter.Channel = channel
	}
	now := postgres.Now().In(texts.Bujumbura)
	filter.First, filter.Last = f.Day("from"), f.Day("to")
	if filter.Last.IsZero() {
		filter.Last = time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, texts.Bujumbura)
	}
	if filter.First.IsZero() {
		filter.First = filter.Last.AddDate(0, 0, 1-qualityDays)
	}
	switch {
	case filter.Last.Before(filter.First):
		f.Refuse("to", "quality.period.turned")
	case filter.First.AddDate(qualityYears, 0, 0).Before(filter.Last):
		f.Refuse("from", "quality.period.long", qualityYears)
	}
	data.First, data.Last = filter.First, filter.Last
	data.ByMonth = filter.First.AddDate(0, 0, qualityByDay).Before(filter.Last)
	return data, filter
}

// choices returns the names with their texts, after an empty one for any.
func choices(v *web.Visit, names []string, texts map[string]string) []web.Option {
	list := v.Options("", "quality.any")
	for _, name := range names {
		list = append(list, web.Option{Value: name, Text: v.Lang.T(texts[name])})
	}
	return list
}

// fillQuality counts the messages of the filter, once, and lays out the page. With a wrong parameter it counts nothing.
func (ps *Pages) fillQuality(v *web.Visit, p *qualityPage, filter statistics.QualityFilter) error {
	p.Total.Quality = &statistics.Quality{}
	if !v.Form().OK() {
		return nil
	}
	by := statistics.ByDay
	if p.ByMonth {
		by = statistics.ByMonth
	}
	counted, err := ps.Deps.Statistics.Quality(v.Ctx(), filter, by, statistics.ByCarrier)
	if err != nil {
		return err
	}
	days, carriers := map[string]*statistics.Quality{}, map[string]*statistics.Quality{}
	add := func(to map[string]*statistics.Quality, key string, q *statistics.Quality) {
		if to[key] == nil {
			to[key] = &statistics.Quality{}
		}
		to[key].Add(q)
	}
	for i := range counted {
		q := &counted[i]
		add(days, q.Day.Format(time.DateOnly), q)
		add(carriers, q.Carrier, q)
		p.Total.Add(q)
	}
	p.Total = rowOf(v, "", p.Total.Quality)
	for name, q := range carriers {
		row := rowOf(v, name, q)
		if v.Form().Value("carrier") == "" {
			row.Link = v.Form().Address(p.Path, "carrier", name)
		}
		p.Carriers = append(p.Carriers, row)
	}
	slices.SortFunc(p.Carriers, func(a, b qualityRow) int {
		return cmp.Or(cmp.Compare(b.Accepted(), a.Accepted()), cmp.Compare(a.Name, b.Name))
	})
	addDays(v, p, days)
	counts := make([]int64, len(p.Total.Reasons))
	for i, r := range p.Total.Reasons {
		counts[i] = r.Messages
	}
	shares := statistics.Shares(counts...)
	for i, r := range p.Total.Reasons {
		if len(p.Reasons) == web.FirstsOnPage {
			p.Others++
			continue
		}
		text, code := ps.reasonWords(v, r.Reason)
		p.Reasons = append(p.Reasons, qualityReason{text, code, r.Messages, percent(v.Lang, shares[i])})
	}
	return nil
}

// addDays adds the days or months to the table and the plot; the plot has also those without messages.
func addDays(v *web.Visit, p *qualityPage, days map[string]*statistics.Quality) {
	day, step, name := p.First, func(t time.Time) time.Time { return t.AddDate(0, 0, 1) }, v.Lang.Day
	if p.ByMonth {
		day, step, name = p.First.AddDate(0, 0, 1-p.First.Day()), func(t time.Time) time.Time { return t.AddDate(0, 1, 0) },
			v.Lang.Month
	}
	var labels []string
	for ; !day.After(p.Last); day = step(day) {
		q := cmp.Or(days[day.Format(time.DateOnly)], &statistics.Quality{})
		switch {
		case q.Accepted() == 0:
		case p.ByMonth:
			p.Days = append(p.Days, rowOf(v, name(day), q))
		default:
			p.Days = append(p.Days, rowOf(v, v.Lang.Date(day), q))
		}
		p.Plot.Columns, labels = append(p.Plot.Columns, sharesOf(q)), append(labels, name(day))
	}
	slices.Reverse(p.Days)
	p.Plot.Top = 1000
	for percent := int64(0); percent <= 100; percent += 25 {
		p.Plot.line(percent*10, v.Lang.T("quality.percent", percent))
	}
	for i := len(labels) - 1; i >= 0; i -= (len(labels) + qualityLabels - 1) / qualityLabels {
		p.Plot.label(i, labels[i])
	}
}

// sharesOf returns the outcomes in thousandths of all messages.
func sharesOf(q *statistics.Quality) outcomes {
	shares := statistics.Shares(q.Sent, q.Failed, q.Pending())
	return outcomes{shares[0], shares[1], shares[2]}
}

func rowOf(v *web.Visit, name string, q *statistics.Quality) qualityRow {
	return qualityRow{Quality: q, Name: name, Expired: q.Because(submission.ReasonExpired),
		Rate: outcomes{Sent: q.Sent, Failed: q.Failed}.rate(v.Lang), ToCarrier: times(v, q.ToCarrier),
		ToReceipt: times(v, q.ToReceipt)}
}
