package senders

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/accounts/letter"
	"intumwa/internal/postgres"
	"intumwa/sms"
)

// States of a sender at a carrier. It works there in the last two ([accounts.Sender.WorksAt]).
const (
	RegistrationRequested = "requested"
	RegistrationSent      = "sent" // to the carrier
	RegistrationRefused   = "refused"
	RegistrationApproved  = "approved"
	RegistrationNotNeeded = "not_needed"
)

// RegistrationStates are all states, in the order of a registration's life.
var RegistrationStates = []string{RegistrationRequested, RegistrationSent, RegistrationApproved, RegistrationRefused,
	RegistrationNotNeeded}

// RegistrationPatience is how long a registration normally waits for a carrier.
const RegistrationPatience = 7 * 24 * time.Hour

// Registration is what is recorded about a sender at a carrier.
type Registration struct {
	ID        int64
	SenderID  int64
	Sender    string // its name
	CompanyID int64
	Company   string // its name
	Carrier   string
	State     string
	Works     bool              // messages may go there
	Reason    string            // of the state, for the company
	SentOn    *time.Time        // the day when the request went to the carrier; nil: not recorded
	ChangedAt time.Time         // since when it has this state
	Document  accounts.Document // the latest about it
}

// Waits reports whether the carrier has not decided.
func (r Registration) Waits() bool {
	return r.State == RegistrationRequested || r.State == RegistrationSent
}

// Version identifies this state, for a decision of an administrator; "" if nothing is recorded.
func (r Registration) Version() string {
	if r.ID == 0 {
		return ""
	}
	return r.State + " " + strconv.FormatInt(r.ChangedAt.UnixMicro(), 10)
}

// Late reports whether it has waited longer than [RegistrationPatience].
func (r Registration) Late() bool {
	return r.Waits() && postgres.Now().Sub(r.ChangedAt) > RegistrationPatience
}

// RegistrationChange is the input of [Store.SetRegistration].
type RegistrationChange struct {
	State  string
	Reason string    // for the company; required for a refusal
	SentOn time.Time // the day when the request went to the carrier; zero: today with the state sent, else as it was
}

const registrationColumns = `r.id, r.sender_id, s.name, r.company_id,
	(select c.name from companies c where c.id = r.company_id), r.carrier, r.state, r.works, r.reason,
	r.submitted_on, r.changed_at,
	coalesce(d.name, ''), coalesce(d.type, ''), coalesce(d.size, 0), d.at
	from sender_carriers r join senders s on s.id = r.sender_id left join sender_documents d on d.registration_id = r.id`

func scanRegistration(row pgx.CollectableRow) (r Registration, err error) {
	d := &r.Document
	err = row.Scan(&r.ID, &r.SenderID, &r.Sender, &r.CompanyID, &r.Company, &r.Carrier, &r.State, &r.Works, &r.Reason,
		&r.SentOn, &r.ChangedAt, &d.Name, &d.Type, &d.Size, &d.At)
	return r, err
}

// SetRegistration records a sender's state at a carrier, and returns what was recorded before (without an id: nothing)
// and now. The company's owner gets a mail when the carrier approves or refuses. The errors are [accounts.ErrInvalid]
// and [accounts.ErrNotFound], or those of Postgres. It does not check that there is such a carrier.
func (a *Store) SetRegistration(ctx context.Context, sender int64, carrier string, to RegistrationChange) (
	before, after Registration, err error) {
	switch {
	case !slices.Contains(RegistrationStates, to.State):
		return before, after, accounts.Errorf(accounts.ErrInvalid, "%q is no state: use %s", to.State,
			strings.Join(RegistrationStates, ", "))
	case to.SentOn.After(postgres.Now().Add(24 * time.Hour)):
		return before, after, accounts.Errorf(accounts.ErrInvalid, "the day of the sending is in the future")
	case to.State == RegistrationRefused || to.Reason != "":
		if to.Reason, err = cleanReason("reason", to.Reason); err != nil {
			return before, after, err
		}
	}
	err = pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		in := a.In(tx)
		var company int64
		if company, err = accounts.One(ctx, tx, "locking a sender", noSender(sender), pgx.RowTo[int64],
			`select company_id from senders where id = $1 for no key update`, sender); err != nil {
			return err
		}
		was, err := in.registrations(ctx, `where r.sender_id = $1 and r.carrier = $2`, sender, carrier)
		if err != nil {
			return err
		}
		before = Registration{}
		if len(was) > 0 {
			before = was[0]
		}
		sent := before.SentOn
		if !to.SentOn.IsZero() {
			sent = &to.SentOn
		} else if to.State == RegistrationSent && before.State != RegistrationSent {
			sent = new(postgres.Now().In(sms.Burundi))
		}
		if _, err := tx.Exec(ctx, `
			with changed as (
				insert into sender_carriers as r (sender_id, company_id, carrier, state, reason, submitted_on)
					values ($1, $2, $3, $4, $5, $6)
				on conflict (sender_id, carrier) do update set state = $4, reason = $5, submitted_on = $6,
					changed_at = case when r.state = $4 then r.changed_at else clock_timestamp() end
				returning id)
			`+letter.Insert+` select '`+letter.Registration+
			`', $2, id, null::jsonb from changed where $4 in ('approved', 'refused') and ($4 <> $7 or $5 <> $8) `+letter.Replace,
			sender, company, carrier, to.State, to.Reason, sent, before.State, before.Reason); err != nil {
			return err
		}
		now, err := in.registrations(ctx, `where r.sender_id = $1 and r.carrier = $2`, sender, carrier)
		if err == nil {
			after = now[0]
		}
		return err
	})
	if err != nil {
		return before, after, accounts.Wrap(fmt.Sprintf("recording sender %d at %s", sender, carrier), err)
	}
	a.forget()
	return before, after, nil
}

func (a *Store) registrations(ctx context.Context, where string, args ...any) ([]Registration, error) {
	return postgres.All(ctx, a.pool, "reading the senders at carriers", scanRegistration, `select `+registrationColumns+
		` `+where, args...)
}

// Registrations lists what is recorded about senders at carriers, like the lists for operators. sender limits it to one
// sender, 0: all; waiting to those that wait for their carrier.
func (a *Store) Registrations(ctx context.Context, sender int64, waiting bool, after int64, limit int) ([]Registration,
	error) {
	where := `where r.id > $1`
	if waiting {
		where += ` and r.state in ('requested', 'sent')`
	}
	return a.registrations(ctx, where+` and ($2 = 0 or r.sender_id = $2) order by r.id limit $3`, after, sender, limit)
}

// LateRegistrations lists those that have waited longer than [RegistrationPatience], like [Store.Registrations].
func (a *Store) LateRegistrations(ctx context.Context, after int64, limit int) ([]Registration, error) {
	return a.registrations(ctx, `where r.id > $1 and r.state in ('requested', 'sent')
		and r.changed_at < now() - $2::interval order by r.id limit $3`, after, RegistrationPatience, limit)
}

// WaitingRegistrations counts those that wait for their carrier, and those of them that have waited longer than
// [RegistrationPatience].
func (a *Store) WaitingRegistrations(ctx context.Context) (all, late int, err error) {
	if err := a.pool.QueryRow(ctx, `select count(*), count(*) filter (where changed_at < now() - $1::interval)
		from sender_carriers where state in ('requested', 'sent')`,
		RegistrationPatience).Scan(&all, &late); err != nil {
		return 0, 0, fmt.Errorf("counting the senders that wait for a carrier: %w", err)
	}
	return all, late, nil
}

// RegistrationsOf returns what is recorded about a company's senders, by sender and carrier.
func (a *Store) RegistrationsOf(ctx context.Context, company sms.CompanyID) (map[int64]map[string]Registration, error) {
	list, err := a.registrations(ctx, `where r.company_id = $1 order by r.id limit 10000`, int64(company))
	of := map[int64]map[string]Registration{}
	for _, r := range list {
		if of[r.SenderID] == nil {
			of[r.SenderID] = map[string]Registration{}
		}
		of[r.SenderID][r.Carrier] = r
	}
	return of, err
}

// RegistrationByID returns one of them.
func (a *Store) RegistrationByID(ctx context.Context, id int64) (Registration, error) {
	return accounts.One(ctx, a.pool, "reading a sender at a carrier",
		fmt.Sprintf("nothing is recorded with id %d about a sender at a carrier", id), scanRegistration,
		`select `+registrationColumns+` where r.id = $1`, id)
}

// SetRegistrationDocument stores the latest document about a sender at a carrier about which something is recorded. The
// errors are those of [accounts.NewDocument] and [accounts.ErrNotFound].
func (a *Store) SetRegistrationDocument(ctx context.Context, id int64, name string, file []byte) error {
	d, err := accounts.NewDocument(name, file)
	if err != nil {
		return err
	}
	n, err := accounts.Exec(ctx, a.pool, "storing a document about a sender", `
		insert into sender_documents (registration_id, name, type, size, at, document)
			select id, $2, $3, $4, clock_timestamp(), $5 from sender_carriers where id = $1
		on conflict (registration_id) do update set name = excluded.name, type = excluded.type, size = excluded.size,
		at = excluded.at, document = excluded.document`,
		id, d.Name, d.Type, d.Size, file)
	if err == nil && n == 0 {
		_, err = a.RegistrationByID(ctx, id)
	}
	return err
}

// RegistrationDocumentPart returns at most size bytes of a document, from an offset.
func (a *Store) RegistrationDocumentPart(ctx context.Context, id int64, d accounts.Document, from, size int) (
	[]byte, error) {
	return accounts.One(ctx, a.pool, "reading a document", "the document was replaced or deleted", pgx.RowTo[[]byte],
		`select substring(document from $3 for $4) from sender_documents where registration_id = $1 and at = $2`, id, d.At,
		from+1, size)
}
