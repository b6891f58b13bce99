package operations

import (
	"context"

	"intumwa/reports/exports"
)

// exported is the act of reading all messages of a company and month.
func exported(r exports.Request) act {
	return act{name: "messages.export", subject: "month " + r.Month.Format("2006-01"), company: int64(r.Company),
		after: fields{"bodies": r.Bodies}}
}

// AskExport asks for the file of a company's month; the errors are those of [exports.Ask].
func (a Actor) AskExport(ctx context.Context, r exports.Request) error {
	return a.do(ctx, locks, func(in within) (act, error) {
		if _, err := in.companies().CompanyByID(ctx, int64(r.Company)); err != nil {
			return act{}, err
		}
		return exported(r), exports.Ask(ctx, in.Tx, r)
	})
}

// StreamExport records that a company's month is read, and calls write.
func (a Actor) StreamExport(ctx context.Context, r exports.Request, write func() error) error {
	if err := a.do(ctx, locks, func(in within) (act, error) {
		_, err := in.companies().CompanyByID(ctx, int64(r.Company))
		return exported(r), err
	}); err != nil {
		return err
	}
	return write()
}
