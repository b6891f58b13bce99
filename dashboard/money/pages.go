// Package money is the pages of money: a company's orders, invoices and statements, and for administrators payments,
// prices and carriers' invoices.
package money

import (
	"context"
	"html/template"

	"intumwa/billing"
	"intumwa/billing/ebms"
	"intumwa/billing/orders"
	"intumwa/dashboard/web"
	"intumwa/internal/throttle"
	"intumwa/messages/statistics"
	"intumwa/operations"
	"intumwa/reports"
	"intumwa/sms"
)

// Functions are those that the templates of these pages call.
var Functions = template.FuncMap{"monthRows": monthRows, "bif": bif, "priceBIF": priceBIF, "lastDay": lastDay,
	"entryKind": entryKind, "reference": reference, "francs": francs, "documentOf": documentOf}

// Pages are the pages of money.
type Pages struct {
	Deps      Deps
	Reports   reports.Deps
	Operator  web.Operator
	Companies companyReader
	Papers    *throttle.Throttle                           // uploads of a company
	Carriers  func(context.Context) ([]string, error)      // with links
	Owner     func(*web.Visit, web.Tenant) (string, error) // of the company
	// what the tax office does not have; nil: it is not told of invoices
	Unsent func(ctx context.Context, limit int) ([]ebms.Report, error)
	By     func(*web.Visit) Changes
}

// Deps are what these pages call.
type Deps struct {
	Statements *billing.Ledger
	Statistics *statistics.Store
	Orders     *orders.Store
}

// Changes are those that the audit log has.
type Changes interface {
	ReportInvoice(ctx context.Context, name string, to ebms.Retry) (ebms.Report, error)
	SetCompany(ctx context.Context, id int64, to operations.CompanyChange) (operations.Settings, error)
	PlaceOrder(ctx context.Context, ask operations.Ask) (orders.Order, error)
	SetOrderReference(ctx context.Context, company sms.CompanyID, id int64, reference string) error
	SetOrderSlip(ctx context.Context, company sms.CompanyID, id int64, name string, file []byte) error
	DeleteOrderSlip(ctx context.Context, id int64) error
	CancelOrder(ctx context.Context, company sms.CompanyID, id int64, reason string) (orders.Order, error)
	PayOrder(ctx context.Context, id int64, p orders.Payment) (operations.Payment, error)
	CreditInvoice(ctx context.Context, number int64, c orders.Credit) (orders.Invoice, error)
	SetPrice(ctx context.Context, company sms.CompanyID, to billing.Rate) error
	SetTariff(ctx context.Context, carrier string, to billing.Rate) error
}
