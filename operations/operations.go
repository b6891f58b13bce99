// Package operations has the acts of operators and customers, each once, for pages and commands. An act is one
// transaction: the change, its entry in the audit log, and the letter to the person concerned. Callers read the input
// and show the result.
//
//	endpoint, err := operations.By(audit.Operator(), nil, deps).RotateSecret(ctx, company, nil)
//
// An act that changes nothing is not recorded. The same act has the same entry, whoever performs it. The errors are
// those of the packages that change the rows, such as [people.ErrLastOwner], and [ErrChanged].
package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/accounts/companies"
	"intumwa/accounts/keys"
	"intumwa/accounts/people"
	"intumwa/accounts/senders"
	"intumwa/accounts/testnumbers"
	"intumwa/billing/orders"
	"intumwa/inbound/handsets"
	"intumwa/internal/audit"
	"intumwa/internal/postgres"
	"intumwa/sms"
	"intumwa/webhooks"
)

// ErrChanged means that what is decided about has changed since it was shown.
var ErrChanged = errors.New("it has changed since it was shown")

// Deps are the packages that acts change. An act needs only those that it names.
type Deps struct {
	Pool        *pgxpool.Pool
	Many        *pgxpool.Pool // for statements over many messages; with BatchUpdates
	People      *people.Store
	SignIn      *people.SignIn
	Companies   *companies.Store
	Keys        *keys.Store
	Senders     *senders.Store
	TestNumbers *testnumbers.Store
	Webhooks    *webhooks.Webhooks
	Handsets    *handsets.Store
	Orders      *orders.Store
}

// Actor performs acts in one name.
type Actor struct {
	Deps

	name string
	may  func(context.Context) error
}

// By returns the actor of that name, as the audit log has it. Each act first calls may, unless nil, and returns its
// error.
func By(name string, may func(context.Context) error, deps Deps) Actor {
	return Actor{deps, name, may}
}

// Keep stores a text that is shown once, in the transaction that makes it. It is nil for callers that show it at once.
type Keep func(tx pgx.Tx, text string) error

func (k Keep) keep(tx pgx.Tx, text string) error {
	if k == nil {
		return nil
	}
	return k(tx, text)
}

// act is an entry of the audit log. With equal states before and after, nothing has changed, unless hidden is true.
type act struct {
	name    string
	subject string
	company int64 // 0: it does not concern one
	before  any
	after   any
	reason  string // added to the state after
	hidden  bool   // what has changed is not in the states
}

// fields is a state in the audit log.
type fields = map[string]any

// on returns an act on a subject with an id.
func on(name, kind string, id, company int64, before, after any) act {
	return act{name: name, subject: fmt.Sprintf("%s %d", kind, id), company: company, before: before, after: after}
}

// within is a transaction, and the packages in it.
type within struct {
	pgx.Tx

	deps  Deps
	hooks *webhooks.Webhooks
}

func (in within) people() *people.Store           { return in.deps.People.In(in.Tx) }
func (in within) companies() *companies.Store     { return in.deps.Companies.In(in.Tx) }
func (in within) keys() *keys.Store               { return in.deps.Keys.In(in.Tx) }
func (in within) senders() *senders.Store         { return in.deps.Senders.In(in.Tx) }
func (in within) orders() *orders.Store           { return in.deps.Orders.In(in.Tx) }
func (in within) testNumbers() *testnumbers.Store { return in.deps.TestNumbers.In(in.Tx) }

// Isolation of a transaction.
const (
	// work changes what it has read; if another transaction changes it meanwhile, work runs again
	reads = pgx.RepeatableRead
	locks = pgx.ReadCommitted // work locks before it reads: rows with frequent writes, and limited numbers of rows
)

// do runs work and records its act in one transaction. On a conflict work runs again: it must reset the variables that
// it sets outside itself.
func (a Actor) do(ctx context.Context, level pgx.TxIsoLevel, work func(in within) (act, error)) error {
	if a.may != nil {
		if err := a.may(ctx); err != nil {
			return err
		}
	}
	return a.again(ctx, level, work)
}

// again is do for a further transaction of the same act.
func (a Actor) again(ctx context.Context, level pgx.TxIsoLevel, work func(in within) (act, error)) error {
	err := postgres.Retry(ctx, func() error {
		return pgx.BeginTxFunc(ctx, a.Pool, pgx.TxOptions{IsoLevel: level}, func(tx pgx.Tx) error {
			in := within{Tx: tx, deps: a.Deps}
			if a.Webhooks != nil {
				in.hooks = a.Webhooks.In(tx)
			}
			done, err := work(in)
			if err != nil {
				return err
			}
			return a.record(ctx, tx, done)
		})
	})
	if err == nil && a.Webhooks != nil {
		a.Webhooks.Kick()
	}
	return err
}

// note records an act that changes no row.
func (a Actor) note(ctx context.Context, done act) error {
	return a.do(ctx, locks, func(within) (act, error) { return done, nil })
}

func (a Actor) record(ctx context.Context, tx pgx.Tx, done act) error {
	if done.name == "" || done.before != nil && !done.hidden && reflect.DeepEqual(done.before, done.after) {
		return postgres.ConfirmWith(ctx, tx) // a COMMIT without an answer may have changed it, and be on no standby
	}
	if done.reason != "" {
		text, err := json.Marshal(done.after)
		after := fields{}
		if err == nil {
			err = json.Unmarshal(text, &after)
		}
		if err != nil {
			return fmt.Errorf("recording %s: %w", done.name, err)
		}
		after["reason"], done.after = done.reason, after
	}
	return audit.Record(ctx, tx, audit.Entry{Actor: a.name, Act: done.name, Subject: done.subject,
		Company: sms.CompanyID(done.company),
		Before:  done.before, After: done.after})
}
