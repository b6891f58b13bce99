package dashboard

import (
	"github.com/jackc/pgx/v5"

	"intumwa/internal/audit"
	"intumwa/internal/postgres"
	"intumwa/sms"
)

// change is the only way for a page to change what the audit log records: in one transaction it runs work and records
// the returned act of the signed-in user. An entry without an act means that nothing changed, and is not recorded. The
// entry's company defaults to the user's own, except in the administration.
//
// The transaction is repeatable read, so work changes the state that it has read. On a conflict work runs again; it
// must reset the variables that it sets outside itself.
func (v *visit) change(work func(tx pgx.Tx) (audit.Entry, error)) error {
	return v.changeIn(pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, work)
}

// changeBusy is change for work that locks before it reads: rows with frequent writes, and limited numbers of rows. It
// sees the state at the time of the lock.
func (v *visit) changeBusy(work func(tx pgx.Tx) (audit.Entry, error)) error {
	return v.changeIn(pgx.TxOptions{}, work)
}

func (v *visit) changeIn(options pgx.TxOptions, work func(tx pgx.Tx) (audit.Entry, error)) error {
	// Audit rows are permanent, so each user may add only so many.
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
