package companies

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"intumwa/accounts"
	"intumwa/sms"
)

// Names of facts, as forms and JSON have them.
const (
	FactNIF           = "nif"
	FactTradeRegister = "trade_register"
	FactAddress       = "address"
	FactPhone         = "phone"
	FactContact       = "contact"
	FactDocument      = "document"
)

// Facts are a company's own statements for its approval, unchecked.
type Facts struct {
	NIF           string // tax number; in Burundi ten digits
	TradeRegister string // number in the trade register (RC)
	Address       string
	Phone         string
	Contact       string // a person
	Document      accounts.Document

	ChangedAt *time.Time // nil: nothing was stated
}

// Fact is one of a company's facts. An empty value is missing.
type Fact struct{ Name, Value string }

// List returns all facts in the order of forms.
func (f Facts) List() []Fact {
	return []Fact{{FactNIF, f.NIF}, {FactTradeRegister, f.TradeRegister}, {FactAddress, f.Address}, {FactPhone, f.Phone},
		{FactContact, f.Contact}, {FactDocument, f.Document.Name}}
}

// Missing returns the names of the facts that the company has not stated.
func (f Facts) Missing() (names []string) {
	for _, fact := range f.List() {
		if fact.Value == "" {
			names = append(names, fact.Name)
		}
	}
	return names
}

// Version identifies this state of the facts: a decision carries the version that the administrator saw.
func (f Facts) Version() string {
	if f.ChangedAt == nil {
		return ""
	}
	return strconv.FormatInt(f.ChangedAt.UnixMicro(), 10)
}

// FactsError names the invalid facts. It is an [accounts.ErrInvalid].
type FactsError struct{ Names []string }

// Error returns the text for the user.
func (e *FactsError) Error() string {
	return "these facts are not as they should be: " + strings.Join(e.Names, ", ")
}

func (e *FactsError) Unwrap() error { return accounts.ErrInvalid }

// ForUser marks the text.
func (e *FactsError) ForUser() {}

// ErrFactsClosed means that the company is approved with these facts, which are final.
var ErrFactsClosed = accounts.Errorf(accounts.ErrInvalid,
	"the company is approved with these facts, which cannot be changed now")

// clean trims and checks the facts of a form. It is lenient, because companies of other countries have other numbers,
// and an administrator reads them.
func (f Facts) clean() (Facts, error) {
	var wrong []string
	line := func(name, text string, most int, ok func(string) bool) string {
		text, fits := accounts.OneLine(text, most)
		if !fits || !ok(text) {
			wrong = append(wrong, name)
		}
		return text
	}
	anything := func(string) bool { return true }
	f.NIF = line(FactNIF, strings.ToUpper(strings.NewReplacer(" ", "", "-", "", ".", "", "/", "").Replace(f.NIF)), 20,
		func(text string) bool {
			return digitsIn(text) >= 6 && strings.Trim(text, accounts.Alphanumerics) == ""
		})
	f.TradeRegister = line(FactTradeRegister, f.TradeRegister, 40, func(text string) bool {
		return digitsIn(text) >= 1 && strings.Trim(text, accounts.Alphanumerics+" /.-°º") == ""
	})
	f.Address = line(FactAddress, f.Address, 300, anything)
	f.Phone = line(FactPhone, f.Phone, 30, func(text string) bool {
		n := digitsIn(text)
		return n >= 8 && n <= 15 && strings.Trim(text, "+0123456789 ()-./") == ""
	})
	f.Contact = line(FactContact, f.Contact, accounts.MaxName, anything)
	if len(wrong) > 0 {
		return f, &FactsError{wrong}
	}
	return f, nil
}

func digitsIn(text string) (n int) {
	for _, r := range text {
		if r >= '0' && r <= '9' {
			n++
		}
	}
	return n
}

const factColumns = `coalesce(f.nif, ''), coalesce(f.trade_register, ''), coalesce(f.address, ''), 
	coalesce(f.phone, ''), coalesce(f.contact, ''),
	coalesce(f.document_name, ''), coalesce(f.document_type, ''), coalesce(f.document_size, 0), f.document_at,
	coalesce(f.document_name <> '' and f.document is null, false), f.changed_at`

// columns are the destinations of factColumns.
func (f *Facts) columns() []any {
	d := &f.Document
	return []any{&f.NIF, &f.TradeRegister, &f.Address, &f.Phone, &f.Contact, &d.Name, &d.Type, &d.Size, &d.At, &d.Deleted,
		&f.ChangedAt}
}

func scanFacts(row pgx.CollectableRow) (f Facts, err error) {
	err = row.Scan(f.columns()...)
	return f, err
}

// FactsOf returns a company's facts; empty for a company that stated none, or that does not exist.
func (a *Store) FactsOf(ctx context.Context, company sms.CompanyID) (Facts, error) {
	return a.facts(ctx, company, "")
}

// LockFacts returns a company's facts and locks them until the caller's transaction ends.
func (a *Store) LockFacts(ctx context.Context, company sms.CompanyID) (Facts, error) {
	return a.facts(ctx, company, ` for update`)
}

func (a *Store) facts(ctx context.Context, company sms.CompanyID, lock string) (Facts, error) {
	f, err := accounts.One(ctx, a.pool, "reading a company's facts", "none", scanFacts,
		`select `+factColumns+` from company_facts f where f.company_id = $1`+lock, int64(company))
	if errors.Is(err, accounts.ErrNotFound) {
		return Facts{}, nil
	}
	return f, err
}

// SetFacts stores a company's facts, without its document, and returns them before and after. The errors are
// [FactsError], [ErrFactsClosed], [accounts.ErrNotFound] for an unknown company, or those of Postgres.
func (a *Store) SetFacts(ctx context.Context, company sms.CompanyID, to Facts) (before, after Facts, err error) {
	if to, err = to.clean(); err != nil {
		return before, after, err
	}
	closed := func(f Facts) bool { return f.NIF != "" }
	return a.changeFacts(ctx, company, closed, `nif = $2, trade_register = $3, address = $4, phone = $5, contact = $6`,
		to.NIF, to.TradeRegister, to.Address, to.Phone, to.Contact)
}

// SetDocument stores a company's document and replaces an earlier one. The errors are [accounts.ErrInvalid] for a file
// that is too large or of another type, [ErrFactsClosed], [accounts.ErrNotFound] for an unknown company, or those of
// Postgres.
func (a *Store) SetDocument(ctx context.Context, company sms.CompanyID, name string, file []byte) (before, after Facts,
	err error) {
	d, err := accounts.NewDocument(name, file)
	if err != nil {
		return before, after, err
	}
	closed := func(f Facts) bool { return f.Document.Name != "" }
	return a.changeFacts(ctx, company, closed,
		`document = $2, document_name = $3, document_type = $4, document_size = $5, document_at = clock_timestamp()`,
		file, d.Name, d.Type, d.Size)
}

// changeFacts changes a company's facts. The error is [ErrFactsClosed] if the company is approved and closed returns
// true.
func (a *Store) changeFacts(ctx context.Context, company sms.CompanyID, closed func(Facts) bool, set string,
	args ...any) (before, after Facts, err error) {
	err = pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		in := a.In(tx)
		if _, err := tx.Exec(ctx, `insert into company_facts (company_id) values ($1) on conflict do nothing`,
			int64(company)); err != nil {
			if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.ConstraintName == "company_facts_company_id_fkey" {
				return accounts.NoCompany(int64(company))
			}
			return err
		}
		if before, err = in.LockFacts(ctx, company); err != nil {
			return err
		}
		var approved bool
		if err := tx.QueryRow(ctx, `select approved from companies where id = $1 for share`, int64(company)).Scan(
			&approved); err != nil {
			return err
		}
		if approved && closed(before) {
			return ErrFactsClosed
		}
		if _, err := tx.Exec(ctx, `update company_facts set changed_at = clock_timestamp(), `+set+` where company_id = $1`,
			append([]any{int64(company)}, args...)...); err != nil {
			return err
		}
		after, err = in.FactsOf(ctx, company)
		return err
	})
	if err != nil {
		err = accounts.Wrap(fmt.Sprintf("changing the facts of company %d", company), err)
	}
	return before, after, err
}

// DocumentPart returns at most size bytes of a company's document, as [Store.FactsOf] returned it, from an offset.
// [accounts.ErrNotFound] when it was replaced or deleted since.
func (a *Store) DocumentPart(ctx context.Context, company sms.CompanyID, d accounts.Document, from, size int) (
	[]byte, error) {
	return accounts.One(ctx, a.pool, "reading a document", "the document was replaced or deleted", pgx.RowTo[[]byte],
		`select substring(document from $3 for $4) from company_facts where company_id = $1 and document_at = $2
			and document is not null`, int64(company), d.At, from+1, size)
}

// DeleteDocument deletes the content of a document after an administrator's check; its name stays. The error is
// [accounts.ErrNotFound] when there is none.
func (a *Store) DeleteDocument(ctx context.Context, company sms.CompanyID) (Facts, error) {
	return accounts.One(ctx, a.pool, "deleting a document", fmt.Sprintf("company %d has no document", company), scanFacts,
		`update company_facts f set document = null, changed_at = clock_timestamp() where company_id = $1
			and document is not null returning `+factColumns, int64(company))
}
