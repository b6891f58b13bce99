package following

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"intumwa/dashboard/web"
	"intumwa/internal/postgres"
	"intumwa/messages/statistics"
	"intumwa/sms"
	"intumwa/texts"
)

// spans maps the number of days that a chart can show to the days between two labels.
var spans = map[int]int{7: 1, 30: 5, 90: 15}

type chartDay struct {
	outcomes

	Date time.Time
}

type chartCarrier struct {
	outcomes

	Name string
	Rate string
}

type chartsPage struct {
	plot

	Days     int
	Spans    []int
	Total    outcomes
	ByDay    []chartDay // the oldest first
	Newest   []chartDay // the newest first, for the table
	Carriers []chartCarrier
	First    time.Time
	Last     time.Time
}

// Charts is GET /charts.
func (ps *Pages) Charts(v *web.Visit, t web.Tenant) error {
	number := 30
	if n, err := strconv.Atoi(v.C.Query("days")); err == nil && spans[n] > 0 {
		number = n
	}
	data, err := ps.chart(v, t.CompanyID(), number)
	return v.Page(err, "charts", data)
}

// chart reads a company's messages of the latest days.
func (ps *Pages) chart(v *web.Visit, company sms.CompanyID, number int) (chartsPage, error) {
	now := postgres.Now().In(texts.Bujumbura)
	data := chartsPage{Days: number, Spans: slices.Sorted(maps.Keys(spans)),
		Last: time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)}
	data.First = data.Last.AddDate(0, 0, 1-number)
	days, err := ps.Deps.Statistics.Daily(v.Ctx(), company, data.First, data.Last)
	if err == nil {
		data.fill(v.Lang, days)
	}
	return data, err
}

// fill lays out the charts by day, including days without messages, and by carrier.
func (p *chartsPage) fill(l *texts.Language, days []statistics.Day) {
	p.ByDay = make([]chartDay, p.Days)
	for i := range p.ByDay {
		p.ByDay[i].Date = p.First.AddDate(0, 0, i)
	}
	carriers := map[string]*chartCarrier{}
	for i := range days {
		day := &days[i]
		at := int(day.Date.Sub(p.First).Hours() / 24)
		if at < 0 || at >= p.Days {
			continue
		}
		if carriers[day.Carrier] == nil {
			carriers[day.Carrier] = &chartCarrier{Name: day.Carrier}
		}
		p.ByDay[at].add(day)
		p.Total.add(day)
		carriers[day.Carrier].add(day)
	}
	for _, c := range carriers {
		c.Rate = c.rate(l)
		p.Carriers = append(p.Carriers, *c)
	}
	slices.SortFunc(p.Carriers, func(a, b chartCarrier) int {
		return cmp.Or(cmp.Compare(b.Total(), a.Total()), cmp.Compare(a.Name, b.Name))
	})
	var most int64
	for i := range p.ByDay {
		p.Columns = append(p.Columns, p.ByDay[i].outcomes)
		most = max(most, p.ByDay[i].Total())
	}
	var step int64
	p.Top, step = scale(most)
	for n := int64(0); n <= p.Top; n += step {
		p.line(n, shortNumber(l, n))
	}
	for i := p.Days - 1; i >= 0; i -= spans[p.Days] {
		p.label(i, l.Day(p.ByDay[i].Date))
	}
	p.Newest = slices.Clone(p.ByDay)
	slices.Reverse(p.Newest)
}

// scale returns the end of an axis and the distance of its lines: round numbers, with four or five lines.
func scale(most int64) (top, step int64) {
	for power := int64(1); ; power *= 10 {
		for _, step := range []int64{power, power * 2, power * 5} {
			if step*5 >= most {
				return max((most+step-1)/step, 1) * step, step
			}
		}
	}
}

// shortNumber formats a number for an axis: 15k, 2.5M.
func shortNumber(l *texts.Language, n int64) string {
	tenths, unit := n/100, "k"
	if n >= 1_000_000 {
		tenths, unit = n/100_000, "M"
	}
	if n < 10_000 {
		return l.Number(n)
	}
	if tenths%10 == 0 {
		return l.Number(tenths/10) + unit
	}
	return l.Decimal(tenths) + unit
}
