package verifications

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/internal/otp"
	"intumwa/internal/postgres"
	"intumwa/sms"
)

// Limits of the messages of all verifications within an hour.
const (
	sendsToNumber  = 20 // to a number, by one company
	sendsToAny     = 40 // to a number, by all companies
	sendsToEndUser = 20 // to the numbers of one person, by one company

	wrongCodes = 2 * MostChecks // of a number, at one company, in verifications that were not approved
)

// leastLeft is the time that a verification must have left to be joined: else the code arrives when it is over.
const leastLeft = 20 * time.Second

// Request asks for a message with a code.
type Request struct {
	Company   sms.CompanyID
	User      int64
	Number    sms.Number
	Sender    string
	Locale    string
	Digits    int
	Life      time.Duration
	Reference string
	Amount    string
	Payee     string
	AppHash   string
	WebDomain string
	EndUser   string // the customer's own name of the person; "": none
	Test      bool   // by the test sender
	Keyed     bool   // it has an idempotency key: no other request repeats it
	Arrived   time.Time

	ID ulid.ULID // of a new verification

	Message ulid.ULID                // that is to be sent
	Carrier string                   // of that message
	MayUse  func(sender string) bool // whether the company may use another sender for it
}

// ErrRepeated means that a request repeats one that was accepted within a second: a person clicked twice.
var ErrRepeated = errors.New("the same request was accepted a moment ago")

// Start makes a verification, or counts another message of the pending one for the same number, payment and app: that
// one keeps its code, its time, its sender, its language and its count of wrong codes. Start returns a [LimitError] if
// no message may be sent, and ErrRepeated with the verification if one was sent a moment ago. The caller accepts the
// message in the same transaction.
func (s *Store) Start(ctx context.Context, tx pgx.Tx, r Request) (v Verification, err error) {
	// One request at a time for a number: two at once start one verification.
	if err := lockNumber(ctx, tx, r.Number); err != nil {
		return v, err
	}
	v, repeated, err := s.open(ctx, tx, &r)
	switch {
	case err == nil && repeated:
		return v, ErrRepeated
	case err == nil && v.State == MaxAttempts:
		return v, &LimitError{"checks", after(v.ExpiresAt.Sub(postgres.Now()))}
	case err == nil && (v.Sends >= MostSends || v.ExpiresAt.Sub(postgres.Now()) < leastLeft):
		return v, &LimitError{"sends", after(v.ExpiresAt.Sub(postgres.Now()))}
	case err != nil && !errors.Is(err, ErrNotFound):
		return v, err
	}
	known := err == nil
	if of := s.endUser(&r); of != nil { // several numbers of one person
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('verifications of ' || encode($1, 'hex'),
			0))`, of); err != nil {
			return v, fmt.Errorf("locking a person's verifications: %w", err)
		}
	}
	if err := s.mayStart(ctx, tx, &r); err != nil {
		return v, err
	}
	asked := s.hash(&r) // before the sender is replaced
	secret := otp.New(r.Digits)
	if r.Carrier == sms.SandboxCarrier { // nobody gets the message
		secret = otp.Known(r.Digits)
	}
	places, read := v.fields()
	if known {
		if v.Sender != r.Sender && r.MayUse != nil && r.MayUse(v.Sender) {
			r.Sender = v.Sender
		}
		err = tx.QueryRow(ctx, `UPDATE verifications v SET sends = v.sends + 1, sent_at = now(),
			earlier = v.earlier || v.message, message = $2, carrier = $3, sender = $4,
				end_user = coalesce(v.end_user, $5), asked = $6 WHERE v.id = $1 RETURNING `+columns,
			v.ID, [16]byte(r.Message), r.Carrier, r.Sender, s.endUser(&r), asked).Scan(places...)
	} else {
		err = tx.QueryRow(ctx, `INSERT INTO verifications AS v (ulid, company_id, user_id, phone_number, sender, locale,
			secret, expires_at, message, carrier,
				client_reference, amount, payee, app_hash, web_domain, end_user, test, asked)
			VALUES ($1, $2, $3, $4, $5, $6, $7, now() + $8::interval, $9, $10, nullif($11, ''), nullif($12, ''), nullif($13, ''),
			nullif($14, ''), nullif($15, ''), $16, $17, $18)
			RETURNING `+columns, [16]byte(r.ID), int64(r.Company), r.User, string(r.Number), r.Sender, r.Locale, []byte(secret),
			r.Life,
			[16]byte(r.Message), r.Carrier, r.Reference, r.Amount, r.Payee, r.AppHash, r.WebDomain, s.endUser(&r), r.Test,
			asked).Scan(places...)
	}
	if err != nil {
		return v, fmt.Errorf("storing a verification: %w", err)
	}
	read()
	return v, nil
}

// lockNumber lets one transaction at a time count for a number.
func lockNumber(ctx context.Context, tx pgx.Tx, number sms.Number) error {
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('verifications ' || $1, 0))`,
		string(number)); err != nil {
		return fmt.Errorf("locking a number's verifications: %w", err)
	}
	return nil
}

// hash is the same of equal requests; nil of one with a key.
func (s *Store) hash(r *Request) []byte {
	if r.Keyed {
		return nil
	}
	mac := hmac.New(sha256.New, s.key)
	fmt.Fprintf(mac, "request\x00%d %d %t %q %q %q %d %d", r.Company, r.User, r.Test, r.Number, r.Sender, r.Locale,
		r.Digits, r.Life)
	fmt.Fprintf(mac, " %q %q %q %q %q %q", r.Reference, r.Amount, r.Payee, r.AppHash, r.WebDomain, r.EndUser)
	return mac.Sum(nil)[:16]
}

// open returns the verification that a request joins, locked: a pending one, or one that had too many wrong codes.
// repeated means that an equal request was accepted a moment ago.
func (s *Store) open(ctx context.Context, tx pgx.Tx, r *Request) (v Verification, repeated bool, err error) {
	places, read := v.fields()
	err = tx.QueryRow(ctx, `SELECT `+columns+`, coalesce(v.asked = $9, false) FROM verifications v
		WHERE v.phone_number = $1 AND v.created_at > now() - $2::interval AND v.company_id = $3 AND v.state IN (0, 5)
		AND v.expires_at > now()
			AND v.test = $8 AND (v.state = 5 OR (coalesce(v.amount, ''), coalesce(v.payee, ''), coalesce(v.app_hash, ''),
			coalesce(v.web_domain, '')) = ($4, $5, $6, $7))
		ORDER BY v.state DESC, v.id DESC LIMIT 1 FOR UPDATE`, string(r.Number), MostLife, int64(r.Company), r.Amount, r.Payee,
		r.AppHash, r.WebDomain, r.Test, s.hash(r)).Scan(append(places, &repeated)...)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return v, false, ErrNotFound
	case err != nil:
		return v, false, fmt.Errorf("looking for a pending verification: %w", err)
	}
	read()
	return v, repeated && v.State == Pending && r.Arrived.Sub(v.SentAt) < doubleClick, nil
}

// mayStart checks the limits of an hour.
func (s *Store) mayStart(ctx context.Context, tx pgx.Tx, r *Request) error {
	for _, limit := range []struct {
		name, which string
		most        int
		args        []any
	}{
		{"number", `phone_number = $1 AND company_id = $2`, sendsToNumber, []any{string(r.Number), int64(r.Company)}},
		// many companies try the sandbox's numbers
		{"number", `phone_number = $1 AND NOT (test OR $2)`, sendsToAny, []any{string(r.Number), r.Test}},
		{"end_user", `end_user = $1 AND company_id = $2`, sendsToEndUser, []any{s.endUser(r), int64(r.Company)}},
	} {
		var sent int
		// until the first of them counts no more: a verification counts with all its messages while the last is of this hour
		var left time.Duration
		if err := tx.QueryRow(ctx, `SELECT coalesce(sum(sends), 0)::int, coalesce(min(sent_at) + interval '1 hour' - now(),
			interval '0')
			FROM verifications WHERE `+limit.which+` AND created_at > now() - interval '2 hours'
				AND sent_at > now() - interval '1 hour'`, limit.args...).Scan(&sent, &left); err != nil {
			return fmt.Errorf("counting verifications: %w", err)
		}
		if sent >= limit.most {
			return &LimitError{limit.name, after(left)}
		}
	}
	limit, err := wrongLimit(ctx, tx, r.Number, r.Company, r.Test)
	return cmp.Or(err, limit)
}

// endUser is the keyed hash of a person's name; nil if there is none.
func (s *Store) endUser(r *Request) []byte {
	if r.EndUser == "" {
		return nil
	}
	mac := hmac.New(sha256.New, s.key)
	fmt.Fprintf(mac, "end user\x00%d\x00%s", r.Company, r.EndUser)
	return mac.Sum(nil)[:16]
}
