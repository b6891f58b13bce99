// Package letter has the mails that must not be lost: each is stored in the transaction of its event. Package letters
// sends them.
package letter

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/internal/postgres"
	"intumwa/sms"
)

// Kinds of letters.
const (
	Approval     = "approval"
	Review       = "verification"
	Sender       = "sender"
	Registration = "registration" // of a sender at a carrier
	Balance      = "balance"
	Webhook      = "webhook"
	Endpoint     = "endpoint"
	Contacts     = "contacts"        // all of a company's contacts were exported
	Order        = "order"           // to the operator
	OrderPaid    = "order-paid"      // about an order, as the next two
	OrderStopped = "order-cancelled" // by the operator
	CreditNote   = "credit-note"

	// To a user, about the account.
	Tries    = "tries"
	Password = "password"
	TwoStep  = "two-step"
	Key      = "key"
	Reset    = "reset"
)

// Letter is a mail to a company's owner or to a user, who could not request it again. It is stored in the transaction
// of its event and stays until a mail server accepts it. A new letter replaces an older one about the same subject.
type Letter struct {
	ID      int64
	Kind    string
	Company int64           // 0: it is for a user
	Subject int64           // id of the sender, its registration, the order or exporter; 0: the company; or of the user
	Values  json.RawMessage // values that change with time, such as the balance
	Written time.Time
	Tries   int
}

// BalanceValues are the values of a letter about a low balance.
type BalanceValues struct {
	Credits   int64 `json:"credits"`
	Threshold int64 `json:"threshold"`
	// messages from handsets got no answer for lack of credits; there is no threshold
	Unanswered bool `json:"unanswered,omitempty"`
}

// ContactsValues are the values of a letter about an export of contacts.
type ContactsValues struct {
	By       string `json:"by"` // the e-mail of the user; "": an operator
	Contacts int    `json:"contacts"`
}

// KeyValues are the values of a letter about a new API key.
type KeyValues struct {
	Name string `json:"name"`
}

// EndpointValues are the values of a letter about a changed endpoint.
type EndpointValues struct {
	URL     string `json:"url"`
	Rotated bool   `json:"rotated,omitempty"` // the signing secret was renewed
	// an operator replaced the signing secret, and the old one is not valid any more
	Given bool `json:"given,omitempty"`
}

// OrderValues are the values of a letter about an order.
type OrderValues struct {
	Credits  int64  `json:"credits"`
	Document string `json:"document,omitempty"` // of the sale, or the credit note
	Reason   string `json:"reason,omitempty"`
}

// Beginning and end of statements that write letters. A trigger wakes the processes that send them.
const (
	Insert  = `insert into letters (kind, company_id, subject, said)`
	Replace = `on conflict (company_id, kind, subject) do update
		set said = excluded.said, written_at = clock_timestamp(), due_at = excluded.due_at, tries = 0`
)

// Write stores a letter about a company in the transaction of its event.
func Write(ctx context.Context, tx pgx.Tx, kind string, company sms.CompanyID, values any) error {
	return WriteOf(ctx, tx, kind, company, 0, values)
}

// WriteOf stores a letter about a subject of a company, such as an order, in the transaction of its event.
func WriteOf(ctx context.Context, tx pgx.Tx, kind string, company sms.CompanyID, subject int64, values any) error {
	text, err := json.Marshal(values)
	if err == nil {
		_, err = tx.Exec(ctx, Insert+` values ($1, $2, $3, $4) `+Replace, kind, int64(company), subject, text)
	}
	if err != nil {
		return fmt.Errorf("writing a letter (%s) to company %d: %w", kind, company, err)
	}
	return nil
}

// WriteUser stores a letter to a user in the transaction of its event.
func WriteUser(ctx context.Context, tx postgres.DB, kind string, userID int64, values any) error {
	text, err := json.Marshal(values)
	if err == nil {
		_, err = tx.Exec(ctx, Insert+` values ($1, 0, $2, $3) `+Replace, kind, userID, text)
	}
	if err != nil {
		return fmt.Errorf("writing a letter (%s) to user %d: %w", kind, userID, err)
	}
	return nil
}

// Take takes up to limit letters that are due. Other processes do not get them for the time lease.
func Take(ctx context.Context, db postgres.DB, lease time.Duration, limit int) ([]Letter, error) {
	return postgres.All(ctx, db, "taking letters", pgx.RowToStructByPos[Letter], `
		update letters set tries = tries + 1, due_at = now() + $1::interval
		where id in (select id from letters where due_at <= now() order by due_at, id limit $2 for update skip locked)
		returning id, kind, company_id, subject, said, written_at, tries`, lease, limit)
}

// Drop deletes a letter, unless it was replaced meanwhile.
func Drop(ctx context.Context, db postgres.DB, l Letter) error {
	_, err := accounts.Exec(ctx, db, fmt.Sprintf("deleting a letter to company %d", l.Company),
		`delete from letters where id = $1 and written_at = $2`, l.ID, l.Written)
	return err
}

// Postpone makes a letter due after rest.
func Postpone(ctx context.Context, db postgres.DB, l Letter, rest time.Duration) error {
	_, err := accounts.Exec(ctx, db, fmt.Sprintf("postponing a letter to company %d", l.Company),
		`update letters set due_at = now() + $3::interval where id = $1 and written_at = $2`, l.ID, l.Written, rest)
	return err
}
