package main

import (
	"context"
	"fmt"
	"log/slog"

	"intumwa/reports/exports"
	"intumwa/sms"
)

type adminReportExportCmd struct {
	Company  int64  `required:"" help:"The company's id."`
	Month    string `required:"" placeholder:"YYYY-MM" help:"A calendar month in Burundi."`
	Body     bool   `help:"With the texts that are still kept."`
	Language string `default:"en" enum:"en,fr" help:"Of the reasons, en or fr: French files have semicolons."`
}

// do prints the file as it reads it: its memory does not depend on the number of messages.
func (c *adminReportExportCmd) do(ctx context.Context, o *operator) (any, error) {
	month, err := exports.ParseMonth(c.Month)
	if err != nil {
		return nil, fmt.Errorf("--month: %w", err)
	}
	files, err := exports.New(o.pool, 0, slog.Default())
	if err != nil {
		return nil, err
	}
	r := exports.Request{Company: sms.CompanyID(c.Company), Month: month, Language: c.Language, Bodies: c.Body}
	return nil, o.by(nil).StreamExport(ctx, r, func() error {
		_, err := files.Stream(ctx, o.stdout, r)
		return err
	})
}
