package dashboard

import (
	"github.com/jackc/pgx/v5"

	"intumwa/internal/audit"
	"intumwa/internal/postgres"
	"intumwa/sms"
)

// change is the one way in which a page changes what the audit log records: it runs work and records the act that work
// returns in one transaction, as an act of the signed-in user. An entry without an act is not recorded: nothing changed. The
// entry's company is the user's own if none is given, except in the administration.
//
// The transaction is repeatable read: what work reads as the state before is the state that it changes. When another one
// interferes, work is called again; it must reset the variables that it sets outside itself.
func (v *visit) change(work func(tx pgx.Tx) (audit.Entry, error)) error {
	return v.changeIn(pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, work)
}

// changeBusy is change for work that takes a lock before it reads: rows with frequent writes, and what there may be only so
// many of. It sees what was there when it had the lock, not when it began to wait.
func (v *visit) changeBusy(work func(tx pgx.Tx) (audit.Entry, error)) error {
	return v.changeIn(pgx.TxOptions{}, work)
}

func (v *visit) changeIn(options pgx.TxOptions, work func(tx pgx.Tx) (audit.Entry, error)) error {
	// The rows of the audit log stay for ever, so that a user makes only so many.
	if changes := v.d.rooms.Tries.Changes; changes != nil && !changes.Allow(v.ctx(), v.session.User.ID).Allowed {
		return errChanges
	}
	return postgres.Retry(v.ctx(), func() error {
		return pgx.BeginTxFunc(v.ctx(), v.d.rooms.Pool, options, func(tx pgx.Tx) error {
			entry, err := work(tx)
			if err != nil || entry.Act == "" {
				return err
			}
			entry.Actor = audit.User(v.session.User.ID)
			if entry.Company == 0 && v.session.Company != nil && !v.administers {
				entry.Company = sms.CompanyID(v.session.Company.ID)
			}
			return audit.Record(v.ctx(), tx, entry)
		})
	})
}
