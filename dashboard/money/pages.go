// Package money is the pages of money: a company's statements, and for administrators prices and carriers' invoices.
package money

import (
	"context"
	"html/template"

	"intumwa/billing"
	"intumwa/billing/ebms"
	"intumwa/dashboard/web"
	"intumwa/messages/statistics"
	"intumwa/operations"
	"intumwa/reports"
	"intumwa/sms"
)

// Functions are those that the templates of these pages call.
var Functions = template.FuncMap{"monthRows": monthRows, "bif": bif, "priceBIF": priceBIF, "lastDay": lastDay,
	"entryKind": entryKind, "reference": reference}

// Pages are the pages of money.
type Pages struct {
	Deps     Deps
	Reports  reports.Deps
	Operator web.Operator
	Carriers func(context.Context) ([]string, error)      // with links
	Owner    func(*web.Visit, web.Tenant) (string, error) // of the company
	// what the tax office does not have; nil: it is not told of invoices
	Unsent func(ctx context.Context, limit int) ([]ebms.Report, error)
	By     func(*web.Visit) Changes
}

// Deps are what these pages call.
type Deps struct {
	Statements *billing.Ledger
	Statistics *statistics.Store
}

// Changes are those that the audit log has.
type Changes interface {
	ReportInvoice(ctx context.Context, name string, to ebms.Retry) (ebms.Report, error)
	SetCompany(ctx context.Context, id int64, to operations.CompanyChange) (operations.Settings, error)
	SetPrice(ctx context.Context, company sms.CompanyID, to billing.Rate) error
	SetTariff(ctx context.Context, carrier string, to billing.Rate) error
}
