package senders

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/accounts/letter"
	"intumwa/internal/postgres"
	"intumwa/sms"
)

// Bounds of sender requests.
const (
	MaxWaiting = 3   // senders of a company that may wait for approval at once
	MaxSenders = 50  // senders of a company, in any state
	MaxPurpose = 500 // characters of a purpose, and of the reason of a refusal
)

// States of a sender request.
const (
	Waiting  = "waiting"
	Approved = "approved"
	Refused  = "refused"
)

// SenderRequest is a sender with the state of its approval.
type SenderRequest struct {
	accounts.Sender

	CompanyID int64
	Company   string // its name
	Purpose   string // the company's reason; empty when an operator registered it by a command
	AskedAt   time.Time
	RefusedAt *time.Time // nil: not refused
	Refusal   string     // the reason, for the company
}

// State returns Waiting, Approved or Refused.
func (r SenderRequest) State() string {
	switch {
	case r.Approved:
		return Approved
	case r.RefusedAt != nil:
		return Refused
	}
	return Waiting
}

// Version identifies what an administrator decides about: a decision carries the version of what was shown.
func (r SenderRequest) Version() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{r.Name, r.Country, r.Purpose, r.State()}, "\x00")))
	return hex.EncodeToString(sum[:8])
}

const senderRequestColumns = `id, name, country, approved, company_id,
	(select c.name from companies c where c.id = company_id), purpose, asked_at,
	case when not approved then refused_at end, case when not approved then refusal else '' end`

func scanSenderRequest(row pgx.CollectableRow) (r SenderRequest, err error) {
	err = row.Scan(&r.ID, &r.Name, &r.Country, &r.Approved, &r.CompanyID, &r.Company, &r.Purpose, &r.AskedAt, &r.RefusedAt,
		&r.Refusal)
	return r, err
}

// RequestSender stores a company's request for a sender, which an administrator approves with [Store.SetSender] or
// refuses with [Store.RefuseSender]. A refused name may be requested again. The errors are [accounts.ErrInvalid];
// [accounts.ErrExists] for a name that the company has or has requested; [accounts.ErrTooMany]; [accounts.ErrNotFound]
// for an unknown company.
func (a *Store) RequestSender(ctx context.Context, company sms.CompanyID, name, country, purpose string) (
	r SenderRequest, err error) {
	if country == "" {
		country = defaultCountry
	}
	country = strings.ToUpper(country)
	if err := a.checkSender(name, country); err != nil {
		return SenderRequest{}, err
	}
	if purpose, err = cleanReason("purpose", purpose); err != nil {
		return SenderRequest{}, err
	}
	err = pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		// Serialize a company's requests, for the limits.
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('senders', $1))`,
			int64(company)); err != nil {
			return err
		}
		var known bool
		var all, waiting int
		err := tx.QueryRow(ctx, `
			select exists (select from companies where id = $1), count(*) filter (where name <> $2),
				count(*) filter (where not approved and refused_at is null)
			from senders where company_id = $1`, int64(company), name).Scan(&known, &all, &waiting)
		switch {
		case err != nil:
			return err
		case !known:
			return accounts.NoCompany(int64(company))
		case waiting >= MaxWaiting || all >= MaxSenders:
			return accounts.Errorf(accounts.ErrTooMany, "company %d has %d senders, of which %d wait", company, all, waiting)
		}
		rows, err := tx.Query(ctx, `
			insert into senders as s (company_id, name, country, purpose) values ($1, $2, $3, $4)
			on conflict (company_id, name) do update
			set country = excluded.country, purpose = excluded.purpose, asked_at = now(), refused_at = null, refusal = ''
			where not s.approved and s.refused_at is not null
			returning `+senderRequestColumns, int64(company), name, country, purpose)
		if err != nil {
			return err
		}
		r, err = pgx.CollectExactlyOneRow(rows, scanSenderRequest)
		if errors.Is(err, pgx.ErrNoRows) {
			return accounts.Errorf(accounts.ErrExists, "company %d has a sender %s already, or waits for it", company, name)
		}
		return err
	})
	if err != nil {
		return SenderRequest{}, accounts.Wrap(fmt.Sprintf("storing a sender of company %d", company), err)
	}
	a.forget()
	return r, nil
}

// RefuseSender refuses a waiting sender, or withdraws an approval, with a reason for the company. The errors are
// [accounts.ErrInvalid] for an empty or too long reason, [accounts.ErrNotFound], or those of Postgres.
func (a *Store) RefuseSender(ctx context.Context, id int64, reason string) (SenderRequest, error) {
	reason, err := cleanReason("reason", reason)
	if err != nil {
		return SenderRequest{}, err
	}
	return a.decide(ctx, id, `approved = false, refused_at = now(), refusal = $2`, `was_refusal is distinct from $2`,
		reason)
}

// SetSender approves a sender, even a refused one, or withdraws its approval, and returns its new state.
func (a *Store) SetSender(ctx context.Context, id int64, approved bool) (SenderRequest, error) {
	return a.decide(
		ctx, id,
		`approved = $2, refused_at = case when not $2 then s.refused_at end,
			refusal = case when $2 then '' else s.refusal end`,
		`approved and not was_approved`, approved)
}

// decide changes the approval of a sender, and mails the decision to the company's owner if the condition mailed holds.
func (a *Store) decide(ctx context.Context, id int64, set, mailed string, arg any) (SenderRequest, error) {
	r, err := accounts.One(ctx, a.pool, fmt.Sprintf("changing sender %d", id), noSender(id), scanSenderRequest, `
		with was as (select id, approved as was_approved, case when not approved and refused_at is not null
			then refusal end as was_refusal from senders where id = $1 for update),
		changed as (update senders s set `+set+` from was where s.id = was.id returning s.*, was_approved, was_refusal),
		mails as (`+letter.Insert+` select '`+letter.Sender+`', company_id, id, null::jsonb from changed where `+mailed+` `+
		letter.Replace+`)
		select `+senderRequestColumns+` from changed`, id, arg)
	if err == nil {
		a.forget()
	}
	return r, err
}

// SenderByID returns a sender with the state of its approval.
func (a *Store) SenderByID(ctx context.Context, id int64) (SenderRequest, error) {
	return accounts.One(ctx, a.pool, "reading a sender", noSender(id), scanSenderRequest, `select `+senderRequestColumns+
		` from senders where id = $1`, id)
}

func noSender(id int64) string { return fmt.Sprintf("there is no sender with id %d", id) }

// SenderRequestsOf lists a company's senders, the latest request first.
func (a *Store) SenderRequestsOf(ctx context.Context, company sms.CompanyID) ([]SenderRequest, error) {
	return a.senders(ctx, `where company_id = $1 order by asked_at desc, id desc limit 1000`, int64(company))
}

func (a *Store) senders(ctx context.Context, where string, args ...any) ([]SenderRequest, error) {
	return postgres.All(ctx, a.pool, "reading senders", scanSenderRequest, `select `+senderRequestColumns+` from senders `+
		where, args...)
}

// cleanReason trims a reason and makes it one line.
func cleanReason(what, text string) (string, error) {
	text, ok := accounts.OneLine(text, MaxPurpose)
	if !ok {
		return "", accounts.Errorf(accounts.ErrInvalid, "the %s is not 1 to %d printable characters", what, MaxPurpose)
	}
	return text, nil
}

// The lists below are for operators: rows of all senders, with ids above after, in the order of the ids, at most limit.

// Senders lists senders.
func (a *Store) Senders(ctx context.Context, after int64, limit int) ([]SenderRequest, error) {
	return a.senders(ctx, `where id > $1 order by id limit $2`, after, limit)
}

// WaitingSenders lists senders that are neither approved nor refused.
func (a *Store) WaitingSenders(ctx context.Context, after int64, limit int) ([]SenderRequest, error) {
	return a.senders(ctx, `where id > $1 and not approved and refused_at is null order by id limit $2`, after, limit)
}

// FindSenders lists the senders of exactly that name.
func (a *Store) FindSenders(ctx context.Context, name string, limit int) ([]SenderRequest, error) {
	return a.senders(ctx, `where name = $1 order by id limit $2`, name, limit)
}
