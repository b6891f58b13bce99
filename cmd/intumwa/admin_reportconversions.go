package main

import (
	"context"
	"errors"
	"strconv"

	"intumwa/sms"
	"intumwa/verifications"
)

type adminReportConversionsCmd struct {
	reportDays

	Carrier   string `help:"Only this carrier."`
	Company   int64  `help:"Only this company." placeholder:"ID"`
	ByCompany bool   `help:"Blocks of each company."`
	Least     int64  `help:"Only blocks of at least so many people." placeholder:"N"`
	CSV       bool   `name:"csv" help:"Print CSV."`
}

// do prints each carrier in all (block null), then its blocks with the most people.
func (c *adminReportConversionsCmd) do(ctx context.Context, o *operator) (any, error) {
	from, to, err := c.period()
	if err != nil {
		return nil, err
	}
	list, more, err := o.verifications().Conversions(
		ctx, verifications.ConversionFilter{Company: sms.CompanyID(c.Company), Carrier: c.Carrier, First: from,
			Last: to.AddDate(0, 0, -1), ByCompany: c.ByCompany, Least: c.Least},
		verifications.MostConversions)
	if err == nil && more {
		err = errors.New("there are too many blocks: name a carrier, a company or fewer days")
	}
	if err != nil || !c.CSV {
		return done(views(list, func(c verifications.Conversion) object {
			return object{{"carrier", c.Carrier}, {"block", orNull(c.Block)}, {"company_id", orNull(companyIn(c))},
				{"asked", c.Asked}, {"converted", c.Converted}}
		}), err)
	}
	row, flush := csvFile(o.stdout, "carrier", "block", "company_id", "asked", "converted")
	for _, each := range list {
		err = errors.Join(err, row(each.Carrier, each.Block, companyIn(each), each.Asked, each.Converted))
	}
	return nil, errors.Join(err, flush())
}

// companyIn is the company of a row; "" of one of all companies.
func companyIn(c verifications.Conversion) string {
	if c.Company == 0 {
		return ""
	}
	return strconv.FormatInt(int64(c.Company), 10)
}
