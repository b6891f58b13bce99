package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"intumwa/messages/statistics"
	"intumwa/messages/submission"
	"intumwa/sms"
)

// countPatience bounds the counting before a report.
const countPatience = 20 * time.Second

type adminReportQualityCmd struct {
	reportDays

	Company    int64    `help:"Only this company." placeholder:"ID"`
	Carrier    string   `help:"Only this carrier." placeholder:"NAME"`
	Sender     string   `help:"Only this sender." placeholder:"NAME"`
	CostCenter string   `help:"Only this cost centre." placeholder:"TEXT"`
	Kind       string   `help:"Only single, batch or test messages." enum:"single,batch,test," default:""`
	Channel    string   `help:"Only messages of the api, a page, smpp or kannel." enum:"api,page,smpp,kannel," default:""`
	By         []string `help:"What a row counts, in this order." enum:"day,month,company,carrier,sender,kind,channel,cost_center" default:"day,carrier"`
	CSV        bool     `name:"csv" help:"Print CSV."`
}

// do prints an array, a row for each group of messages. It first counts the messages whose last count is not of now.
func (c *adminReportQualityCmd) do(ctx context.Context, o *operator) (any, error) {
	from, to, err := c.period()
	if err != nil {
		return nil, err
	}
	by := make([]statistics.Dimension, len(c.By))
	for i, name := range c.By {
		if by[i] = statistics.Dimension(name); slices.Contains(by[:i], by[i]) {
			return nil, fmt.Errorf("--by has %s twice", name)
		}
	}
	if c.Company < 0 {
		return nil, errors.New("--company is a company's number")
	}
	if err := o.countNow(ctx); err != nil {
		return nil, err
	}
	counted, err := statistics.New(o.pool).Quality(
		ctx, statistics.QualityFilter{Company: sms.CompanyID(c.Company), AllCompanies: c.Company == 0, First: from,
			Last:    to.AddDate(0, 0, -1),
			Carrier: c.Carrier, Sender: c.Sender, CostCenter: c.CostCenter, Kind: c.Kind, Channel: c.Channel}, by...)
	if errors.Is(err, statistics.ErrTooManyRows) {
		return nil, fmt.Errorf("%w: more than %d. Ask for fewer days, or fewer properties in --by", err,
			statistics.QualityMost)
	}
	if err != nil {
		return nil, err
	}
	list := make([]object, len(counted)) // [] in JSON, not null
	for i := range counted {
		list[i] = qualityOf(&counted[i], by)
	}
	if !c.CSV {
		return list, nil
	}
	heads := []string{}
	for _, p := range qualityOf(&statistics.Quality{}, by) {
		heads = append(heads, p.key)
	}
	row, flush := csvFile(o.stdout, heads...)
	for _, line := range list {
		cells := make([]any, len(line))
		for i, p := range line {
			switch v := p.value.(type) {
			case *float64:
				if cells[i] = ""; v != nil {
					cells[i] = *v
				}
			case reasonList:
				cells[i] = v.String()
			default:
				cells[i] = v
			}
		}
		err = errors.Join(err, row(cells...))
	}
	return nil, errors.Join(err, flush())
}

// qualityOf is a row as it is printed.
func qualityOf(q *statistics.Quality, by []statistics.Dimension) (o object) {
	for _, d := range by {
		o = append(o, pair{string(d), map[statistics.Dimension]any{statistics.ByDay: q.Day.Format(time.DateOnly),
			statistics.ByMonth:   q.Day.Format("2006-01"),
			statistics.ByCompany: int64(q.Company), statistics.ByCarrier: q.Carrier, statistics.BySender: q.Sender,
			statistics.ByKind: q.Kind, statistics.ByChannel: q.Channel,
			statistics.ByCostCenter: q.CostCenter}[d]})
		if d == statistics.ByCompany {
			o[len(o)-1].key = "company_id"
		}
	}
	var success *float64
	if thousandths, ok := q.Success(); ok {
		success = new(float64(thousandths) / 10)
	}
	o = append(o, object{{"accepted", q.Accepted()}, {"waiting", q.Waiting}, {"at_carrier", q.AtCarrier}, {"sent", q.Sent},
		{"failed", q.Failed},
		{"expired", q.Because(submission.ReasonExpired)}, {"success_percent", success}, {"segments", q.Segments},
		{"credits", q.Credits}}...)
	for _, stage := range []struct {
		name  string
		times statistics.Times
	}{{"to_carrier", q.ToCarrier}, {"to_receipt", q.ToReceipt}} {
		for _, percent := range []int{50, 95, 99} {
			var seconds *float64
			if within, _, ok := stage.times.Percentile(float64(percent) / 100); ok {
				seconds = new(within.Seconds())
			}
			o = append(o, pair{fmt.Sprintf("%s_p%d", stage.name, percent), seconds})
		}
	}
	return append(o, pair{"reasons", reasonList(q.Reasons)})
}

// reasonList are the reasons of failures; an array in JSON, a text elsewhere.
type reasonList []statistics.Reason

// MarshalJSON implements json.Marshaler.
func (r reasonList) MarshalJSON() ([]byte, error) {
	list := make([]object, len(r))
	for i, one := range r {
		list[i] = object{{"reason", one.Reason}, {"messages", one.Messages}}
	}
	return json.Marshal(list)
}

// String has them separated by semicolons.
func (r reasonList) String() string {
	list := make([]string, len(r))
	for i, one := range r {
		list[i] = fmt.Sprintf("%s: %d", one.Reason, one.Messages)
	}
	return strings.Join(list, "; ")
}
