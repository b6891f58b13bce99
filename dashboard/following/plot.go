package following

import (
	"intumwa/dashboard/web"
	"intumwa/messages/statistics"
	"intumwa/texts"
)

// percent returns thousandths in percent.
func percent(l *texts.Language, thousandths int64) string {
	return l.T("charts.percent", l.Decimal(thousandths))
}

// outcomes counts messages by status.
type outcomes struct{ Sent, Failed, Pending int64 }

func (o *outcomes) add(d *statistics.Day) {
	o.Sent, o.Failed, o.Pending = o.Sent+d.Sent, o.Failed+d.Failed, o.Pending+d.Pending
}

// Total returns the sum.
func (o outcomes) Total() int64 { return o.Sent + o.Failed + o.Pending }

// rate returns the share of final messages that were sent; empty when none is final.
func (o outcomes) rate(l *texts.Language) string {
	if decided := o.Sent + o.Failed; decided > 0 {
		return percent(l, statistics.Share(o.Sent, decided))
	}
	return ""
}

// percentOf is percent of a part of a whole.
func percentOf(p *web.View, part, whole int64) string {
	return percent(p.Language, statistics.Share(part, whole))
}

// bar is a part of a stacked bar, in messages.
type bar struct {
	Class      string
	From, Size int64
}

// Bars returns the parts of a bar, left to right.
func (o outcomes) Bars() []bar {
	return []bar{{"sent", 0, o.Sent}, {"failed", o.Sent, o.Failed}, {"pending", o.Sent + o.Failed, o.Pending}}
}

// tick is a horizontal line of the chart with its value, or the label of a day.
type tick struct {
	At    float64 // in the units of the chart
	Label string
}

// plot is a chart of stacked bars, the oldest first.
type plot struct {
	Columns []outcomes
	Top     int64  // end of the axis
	Ticks   []tick // from the bottom up
	Labels  []tick // below the bars
}

// label adds a label below a bar.
func (p *plot) label(column int, text string) {
	p.Labels = append(p.Labels, tick{chartLeft + (float64(column)+.5)*chartWidth/float64(len(p.Columns)), text})
}

// line adds a line at a value.
func (p *plot) line(value int64, text string) {
	p.Ticks = append(p.Ticks, tick{chartTop + chartHeight*(1-float64(value)/float64(p.Top)), text})
}

// The area of the bars in a plot, as in its template.
const chartLeft, chartTop, chartWidth, chartHeight = 52.0, 12.0, 700.0, 200.0
