package dashboard

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"intumwa/dashboard/words"
	"intumwa/internal/postgres"
	"intumwa/messages"
)

// spans are the numbers of days that a chart can show.
var spans = []int{7, 30, 90}

// Outcomes are numbers of messages by status.
type Outcomes struct{ Sent, Failed, Pending int64 }

func (o *Outcomes) add(d *messages.Day) {
	o.Sent, o.Failed, o.Pending = o.Sent+d.Sent, o.Failed+d.Failed, o.Pending+d.Pending
}

// Total returns the sum.
func (o Outcomes) Total() int64 { return o.Sent + o.Failed + o.Pending }

// bar is a rectangle of a chart, in the chart's units.
type bar struct {
	Class      string
	X, Y, W, H string
}

type chartDay struct {
	Outcomes

	Date time.Time
	Bars []bar
}

type chartCarrier struct {
	Outcomes

	Name string
	Bars []bar
	Rate string // share of final messages that were sent; empty when none is final
}

// tick is a horizontal line of the chart with its value, or the label of a day.
type tick struct {
	At, Label string
}

type chartsPage struct {
	Days     int
	Spans    []int
	Total    Outcomes
	ByDay    []chartDay // the oldest first
	Newest   []chartDay // the newest first, for the table
	Carriers []chartCarrier
	Ticks    []tick // from the bottom up
	Labels   []tick // below the bars
	First    time.Time
	Last     time.Time
}

// The size of the chart, in its units.
const (
	chartLeft, chartTop, chartWidth, chartHeight = 52.0, 12.0, 700.0, 200.0
	carrierWidth                                 = 600.0
)

// charts is GET /charts.
func (d *Dashboard) charts(v *visit, t tenant) {
	data := chartsPage{Days: 30, Spans: spans}
	if n, err := strconv.Atoi(v.c.Query("days")); err == nil && slices.Contains(spans, n) {
		data.Days = n
	}
	now := postgres.Now().In(words.Bujumbura)
	last := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, time.UTC)
	first := last.AddDate(0, 0, 1-data.Days)
	days, err := d.rooms.Messages.Daily(v.ctx(), t.company(), first, last)
	if err != nil {
		v.handleError("reading what charts show", err)
		return
	}
	data.First, data.Last = first, last
	data.fill(v.lang, days)
	v.render(http.StatusOK, "charts", data)
}

// fill lays out the charts by day, including days without messages, and by carrier.
func (p *chartsPage) fill(l *words.Language, days []messages.Day) {
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
		p.ByDay[at].add(day)
		p.Total.add(day)
		if carriers[day.Carrier] == nil {
			carriers[day.Carrier] = &chartCarrier{Name: day.Carrier}
		}
		carriers[day.Carrier].add(day)
	}
	var most, mostOfCarrier int64
	for i := range p.ByDay {
		most = max(most, p.ByDay[i].Total())
	}
	for _, c := range carriers {
		mostOfCarrier = max(mostOfCarrier, c.Total())
		if decided := c.Sent + c.Failed; decided > 0 {
			c.Rate = l.T("charts.percent", percent(c.Sent, decided, l))
		}
		p.Carriers = append(p.Carriers, *c)
	}
	slices.SortFunc(p.Carriers, func(a, b chartCarrier) int {
		return cmp.Or(cmp.Compare(b.Total(), a.Total()), cmp.Compare(a.Name, b.Name))
	})
	for i := range p.Carriers {
		p.Carriers[i].Bars = horizontalBars(p.Carriers[i].Outcomes, mostOfCarrier)
	}
	top, step := scale(most)
	slot := chartWidth / float64(p.Days)
	for i := range p.ByDay {
		p.ByDay[i].Bars = verticalBars(p.ByDay[i].Outcomes, chartLeft+float64(i)*slot+slot*.12, slot*.76, top)
	}
	for n := int64(0); n <= top; n += step {
		p.Ticks = append(p.Ticks, tick{units(chartTop + chartHeight*(1-float64(n)/float64(top))), shortNumber(l, n)})
	}
	every := map[int]int{7: 1, 30: 5, 90: 15}[p.Days]
	for i := p.Days - 1; i >= 0; i -= every {
		p.Labels = append(p.Labels, tick{units(chartLeft + (float64(i)+.5)*slot), l.Day(p.ByDay[i].Date)})
	}
	p.Newest = slices.Clone(p.ByDay)
	slices.Reverse(p.Newest)
}

// percent returns a share in percent, rounded down: 100 means all.
func percent(part, whole int64, l *words.Language) string {
	tenths := part * 1000 / whole
	point := ","
	if l.Tag == "en" {
		point = "."
	}
	return strconv.FormatInt(tenths/10, 10) + point + strconv.FormatInt(tenths%10, 10)
}

// verticalBars returns the parts of a day's bar, from the bottom up: sent, failed, pending.
func verticalBars(o Outcomes, x, width float64, top int64) (bars []bar) {
	y := chartTop + chartHeight
	for _, part := range o.parts() {
		if part.n == 0 {
			continue
		}
		height := max(chartHeight*float64(part.n)/float64(top), .75) // so that one message is visible
		y -= height
		bars = append(bars, bar{part.class, units(x), units(y), units(width), units(height)})
	}
	return bars
}

// horizontalBars returns the parts of a carrier's bar, from left to right.
func horizontalBars(o Outcomes, most int64) (bars []bar) {
	x := 0.0
	for _, part := range o.parts() {
		if part.n == 0 {
			continue
		}
		width := max(carrierWidth*float64(part.n)/float64(max(most, 1)), 1)
		bars = append(bars, bar{part.class, units(x), "0", units(width), "14"})
		x += width
	}
	return bars
}

type part struct {
	class string
	n     int64
}

func (o Outcomes) parts() [3]part {
	return [3]part{{"sent", o.Sent}, {"failed", o.Failed}, {"pending", o.Pending}}
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

// shortNumber formats a number for an axis: 1.5k, 2M.
func shortNumber(l *words.Language, n int64) string {
	switch {
	case n >= 1_000_000 && n%100_000 == 0:
		return tenths(l, n/100_000) + "M"
	case n >= 10_000 && n%100 == 0:
		return tenths(l, n/100) + "k"
	}
	return l.Number(n)
}

func tenths(l *words.Language, n int64) string {
	if n%10 == 0 {
		return strconv.FormatInt(n/10, 10)
	}
	point := ","
	if l.Tag == "en" {
		point = "."
	}
	return strconv.FormatInt(n/10, 10) + point + strconv.FormatInt(n%10, 10)
}

func units(f float64) string { return strconv.FormatFloat(math.Round(f*100)/100, 'f', -1, 64) }
