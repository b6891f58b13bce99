package accounts

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// Authenticate returns the holder of a token; bearer is the text after "Bearer " in the Authorization header.
// rule api 5
//
// It uses a cache entry that is at most two seconds old and that no notice has dropped ([Accounts.ForgetUser]). So a
// change by another process takes effect at once, or within two seconds if the notice is lost; so does a new token
// whose id was tried before. The error is [ErrUnauthenticated] or a database error.
func (a *Accounts) Authenticate(ctx context.Context, bearer string) (*Principal, error) {
	id, secret, ok := parseToken(bearer)
	if !ok {
		return nil, ErrUnauthenticated
	}
	hash := sha256.Sum256([]byte(secret))
	e, err := a.cache.get(ctx, id)
	if err != nil {
		return nil, err
	}
	known := &e.secretHash // zeros for an unknown token, which are compared too
	if subtle.ConstantTimeCompare(hash[:], known[:]) != 1 || e.principal == nil || e.principal.Token.Expired() {
		return nil, ErrUnauthenticated
	}
	if e.firstUse() {
		a.lastUse.add(id, postgres.Now())
	}
	return e.principal, nil
}

// Recognize reports whether a token was valid when this process last read it, however long ago. It never reads the
// database: use it to decide whether a token is worth a look-up.
func (a *Accounts) Recognize(bearer string) bool {
	id, secret, ok := parseToken(bearer)
	if !ok {
		return false
	}
	e := a.cache.peek(id)
	if e == nil {
		return false
	}
	hash := sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(hash[:], e.secretHash[:]) == 1
}

// Fresh returns p as Postgres has it now. Call it before a customer is refused because of cached data, so that an
// approval takes effect at once; the rate limit bounds these reads. The error is [ErrUnauthenticated] when the token
// was revoked or has expired meanwhile.
//
// A principal without a token ([Accounts.PrincipalOf]) is read each time.
func (a *Accounts) Fresh(ctx context.Context, p *Principal) (*Principal, error) {
	if p.TokenID == 0 {
		fresh, err := a.PrincipalOf(ctx, p.UserID)
		if errors.Is(err, ErrNotFound) {
			return nil, ErrUnauthenticated
		}
		return fresh, err
	}
	e, err := a.cache.read(ctx, p.TokenID)
	if err != nil {
		return nil, err
	}
	if e.principal == nil || e.principal.Token.Expired() {
		return nil, ErrUnauthenticated
	}
	return e.principal, nil
}

// PrincipalOf reads a signed-in user from Postgres, as a principal without a token. The error is [ErrNotFound] when
// there is no such user, or a database error.
func (a *Accounts) PrincipalOf(ctx context.Context, userID int64) (*Principal, error) {
	rows, err := a.pool.Query(ctx, `select u.id, ''::bytea, null::text[], null::timestamptz, null::cidr[], `+principalColumns+` from users u `+principalJoins+` where u.id = $1`, userID)
	var p *Principal
	if err == nil {
		p, _, err = collectPrincipal(rows, 0)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading user %d: %w", userID, err)
	case p == nil:
		return nil, &callerError{ErrNotFound, fmt.Sprintf("there is no user %d", userID)}
	}
	return p, nil
}

// load reads a token and its holder in one statement. An unknown, revoked or expired token is an entry without a
// principal.
func (a *Accounts) load(ctx context.Context, tokenID int64) (*entry, error) {
	rows, err := a.pool.Query(ctx, `select u.id, t.secret_hash, t.scopes, t.expires_at, t.networks, `+principalColumns+`
		from api_tokens t join users u on u.id = t.user_id `+principalJoins+` where t.id = $1 and t.revoked_at is null and u.disabled_at is null
			and coalesce(t.expires_at > now(), true)`, tokenID)
	if err != nil {
		return nil, fmt.Errorf("reading token %d: %w", tokenID, err)
	}
	e := &entry{}
	var hash []byte
	if e.principal, hash, err = collectPrincipal(rows, tokenID); err != nil {
		return nil, fmt.Errorf("reading token %d: %w", tokenID, err)
	}
	copy(e.secretHash[:], hash)
	return e, nil
}

// Columns and joins of a principal, besides the user's id and the token's hash and limits: one row for each sender of
// the company, or one row without a sender.
const (
	principalColumns = `case when u.test_verified_at is not null then u.test_number else '' end, ` + joinedCompany + `, coalesce(c.opt_outs, false),
		       ` + limitColumns + `, coalesce(s.id, 0), coalesce(s.name, ''), coalesce(s.country, ''), coalesce(s.approved, false),
		       (select jsonb_object_agg(r.carrier, r.works) from sender_carriers r where r.sender_id = s.id)`
	principalJoins = `left join companies c on c.id = u.company_id
		left join senders s on s.company_id = c.id`
)

// collectPrincipal reads all rows; without a row the principal is nil.
func collectPrincipal(rows pgx.Rows, tokenID int64) (found *Principal, hash []byte, err error) {
	p := Principal{TokenID: tokenID}
	var company Company
	var sender Sender
	_, err = pgx.ForEachRow(rows, slices.Concat([]any{&p.UserID, &hash, &p.Token.Scopes, &p.Token.ExpiresAt, &p.Token.Networks, &p.TestNumber}, company.joined(), []any{&company.OptOuts},
		company.Limits.columns(), []any{&sender.ID, &sender.Name, &sender.Country, &sender.Approved, &sender.Works}), func() error {
		if found == nil {
			found = &p
			if p.Company = company.orNil(); p.Company != nil {
				p.Company.Senders = map[string]Sender{}
			}
		}
		if sender.ID != 0 {
			p.Company.Senders[sender.Name] = sender
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return found, hash, nil
}

// Principal is the caller of a request, at most two seconds old. Requests share it: do not change it.
type Principal struct {
	UserID     int64
	TokenID    int64
	Token      TokenLimits
	Company    *Company   // nil when the user has none
	TestNumber sms.Number // the verified test number, empty when there is none
}

// Company is the customer. Its balance belongs to billing.
type Company struct {
	ID            int64
	OwnerID       int64 // an owner, who gets the mails about it
	Name          string
	Approved      bool
	Verified      bool
	SmartEncoding bool
	QuietHours    string // "21:00-06:00", "none", or "" for those of the installation
	Limits        Limits // not set in a [Session] and an [Applicant]

	// OptOuts is whether its opt-out list may have entries. Set in a [Principal] only.
	OptOuts bool
	// Senders by their exact name. Set in a [Principal] only.
	Senders map[string]Sender
}

// joinedCompany are the columns of Company.joined behind a left join: the id is 0 where there is no company.
const joinedCompany = `coalesce(c.id, 0), coalesce(c.owner_id, 0), coalesce(c.name, ''), coalesce(c.approved, false), coalesce(c.verified, false), coalesce(c.smart_encoding, false), coalesce(c.quiet_hours, '')`

func (c *Company) joined() []any {
	return []any{&c.ID, &c.OwnerID, &c.Name, &c.Approved, &c.Verified, &c.SmartEncoding, &c.QuietHours}
}

// orNil returns a copy of a joined company; nil where there is none.
func (c Company) orNil() *Company {
	if c.ID == 0 {
		return nil
	}
	return &c
}

// Sender is a name that a company may send as.
type Sender struct {
	ID       int64  `json:"sender_id"`
	Name     string `json:"name"`
	Country  string `json:"-"` // telco country, ISO 3166-1 alpha-2
	Approved bool   `json:"approved"`

	// Works is whether it works at the carriers about which something is recorded. Set in a [Principal] only; ask
	// [Sender.WorksAt].
	Works map[string]bool `json:"-"`
}

// WorksAt reports whether messages as this sender may go to a carrier: as its registration there says or, if nothing is
// recorded, unless the carrier's configuration requires one.
func (s Sender) WorksAt(carrier string, required bool) bool {
	if works, recorded := s.Works[carrier]; recorded {
		return works
	}
	return !required
}
