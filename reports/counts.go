package reports

import (
	"context"
	"time"

	"intumwa/messages/statistics"
	"intumwa/sms"
)

// used are paid messages with what they were charged.
type used struct {
	day               time.Time // midnight in Burundi, or the first day of the period
	company           sms.CompanyID
	carrier, kind     string
	messages, credits int64
}

// carried are the segments that a link got on a day.
type carried struct {
	day                  time.Time // midnight in Burundi
	carrier, link        string
	unpaid               bool
	accepted, unanswered int64
}

// midnight returns the midnight in Burundi that begins the day of a date.
func midnight(date time.Time) time.Time {
	return time.Date(date.Year(), date.Month(), date.Day(), 0, 0, 0, 0, sms.Burundi)
}

// filter selects the paid messages of a period.
func filter(carrier string, company sms.CompanyID, from, to time.Time) statistics.QualityFilter {
	return statistics.QualityFilter{Company: company, AllCompanies: company == 0, First: from.In(sms.Burundi),
		Last: to.In(sms.Burundi).Add(-time.Hour), Carrier: carrier, Paid: true, Sums: true, Most: 1_000_000}
}

// usageOf counts a company's paid messages by carrier and kind, and if daily by day.
func usageOf(ctx context.Context, s *statistics.Store, company sms.CompanyID, from, to time.Time, daily bool) (
	list []used, err error) {
	by := []statistics.Dimension{statistics.ByCarrier, statistics.ByKind}
	if daily {
		by = append([]statistics.Dimension{statistics.ByDay}, by...)
	}
	counted, err := s.Quality(ctx, filter("", company, from, to), by...)
	for i := range counted {
		q := &counted[i]
		u := used{from, company, q.Carrier, q.Kind, q.Accepted(), q.Credits}
		if daily {
			u.day = midnight(q.Day)
		}
		list = append(list, u)
	}
	return list, err
}

// chargedOf counts the paid messages of a period by carrier and, if each, by company.
func chargedOf(ctx context.Context, s *statistics.Store, carrier string, company sms.CompanyID, from, to time.Time,
	each bool) (list []used, err error) {
	by := []statistics.Dimension{statistics.ByCarrier}
	if each {
		by = append(by, statistics.ByCompany)
	}
	counted, err := s.Quality(ctx, filter(carrier, company, from, to), by...)
	for i := range counted {
		q := &counted[i]
		u := used{from, company, q.Carrier, "", q.Accepted(), q.Credits}
		if each {
			u.company = q.Company
		}
		list = append(list, u)
	}
	return list, err
}

// acceptedOf counts the segments that carriers got.
func acceptedOf(ctx context.Context, s *statistics.Store, carrier string, company sms.CompanyID, from, to time.Time) (
	list []carried, err error) {
	counted, err := s.Carried(ctx, from.In(sms.Burundi), to.In(sms.Burundi).Add(-time.Hour), carrier, company)
	for i := range counted {
		c := &counted[i]
		list = append(list, carried{midnight(c.Day), c.Carrier, c.Link, c.Unpaid, c.Accepted, c.Unanswered})
	}
	return list, err
}
