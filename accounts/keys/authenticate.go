package keys

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/internal/postgres"
)

// Authenticate returns the holder of a token; bearer is the text after "Bearer " in the Authorization header.
// rule api 5
//
// It uses a cache entry that is at most two seconds old and that no notice has dropped ([Holders.ForgetUser]). So a
// change by another process takes effect at once, or within two seconds if the notice is lost; so does a new token
// whose id was tried before. The error is [accounts.ErrUnauthenticated] or a database error.
func (a *Holders) Authenticate(ctx context.Context, bearer string) (*accounts.Principal, error) {
	id, secret, ok := parseToken(bearer)
	if !ok {
		return nil, accounts.ErrUnauthenticated
	}
	hash := sha256.Sum256([]byte(secret))
	e, err := a.cache.get(ctx, id)
	if err != nil {
		return nil, err
	}
	known := &e.secretHash // zeros for an unknown token, which are compared too
	if subtle.ConstantTimeCompare(hash[:], known[:]) != 1 || e.principal == nil || e.principal.Token.Expired() {
		return nil, accounts.ErrUnauthenticated
	}
	if e.firstUse() {
		a.lastUse.add(id, postgres.Now())
	}
	return e.principal, nil
}

// Recognize reports whether a token was valid when this process last read it, however long ago. It never reads the
// database: use it to decide whether a token is worth a look-up.
func (a *Holders) Recognize(bearer string) bool {
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
// approval takes effect at once; the rate limit bounds these reads. The error is [accounts.ErrUnauthenticated] when the
// token was revoked or has expired meanwhile.
//
// A principal without a token ([Holders.PrincipalOf]) is read each time.
func (a *Holders) Fresh(ctx context.Context, p *accounts.Principal) (*accounts.Principal, error) {
	if p.TokenID == 0 {
		fresh, err := a.PrincipalOf(ctx, p.UserID)
		if errors.Is(err, accounts.ErrNotFound) {
			return nil, accounts.ErrUnauthenticated
		}
		return fresh, err
	}
	e, err := a.cache.read(ctx, p.TokenID)
	if err != nil {
		return nil, err
	}
	if e.principal == nil || e.principal.Token.Expired() {
		return nil, accounts.ErrUnauthenticated
	}
	return e.principal, nil
}

// PrincipalOf reads a signed-in user from Postgres, as a principal without a token. The error is [accounts.ErrNotFound]
// when there is no such user, or a database error.
func (a *Holders) PrincipalOf(ctx context.Context, userID int64) (*accounts.Principal, error) {
	rows, err := a.pool.Query(ctx, `select u.id, ''::bytea, null::text[], null::timestamptz, null::cidr[], `+
		principalColumns+` from users u `+principalJoins+` where u.id = $1`, userID)
	var p *accounts.Principal
	if err == nil {
		p, _, err = collectPrincipal(rows, 0)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading user %d: %w", userID, err)
	case p == nil:
		return nil, accounts.Errorf(accounts.ErrNotFound, "there is no user %d", userID)
	}
	return p, nil
}

// load reads a token and its holder in one statement. An unknown, revoked or expired token is an entry without a
// principal.
func (a *Holders) load(ctx context.Context, tokenID int64) (*entry, error) {
	rows, err := a.pool.Query(ctx, `select u.id, t.secret_hash, t.scopes, t.expires_at, t.networks, `+principalColumns+`
		from api_tokens t join users u on u.id = t.user_id `+principalJoins+
		` where t.id = $1 and t.revoked_at is null and u.disabled_at is null
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
	principalColumns = `case when u.test_verified_at is not null then u.test_number else '' end, ` +
		accounts.JoinedCompany + `, coalesce(c.opt_outs, false),
		       ` + accounts.LimitColumns + `, coalesce(s.id, 0), coalesce(s.name, ''), coalesce(s.country, ''),
			coalesce(s.approved, false),
		       (select jsonb_object_agg(r.carrier, r.works) from sender_carriers r where r.sender_id = s.id)`
	principalJoins = `left join companies c on c.id = u.company_id
		left join senders s on s.company_id = c.id`
)

// collectPrincipal reads all rows; without a row the principal is nil.
func collectPrincipal(rows pgx.Rows, tokenID int64) (found *accounts.Principal, hash []byte, err error) {
	p := accounts.Principal{TokenID: tokenID}
	var company accounts.Company
	var sender accounts.Sender
	_, err = pgx.ForEachRow(rows, slices.Concat(
		[]any{&p.UserID, &hash, &p.Token.Scopes, &p.Token.ExpiresAt, &p.Token.Networks, &p.TestNumber}, company.Joined(),
		[]any{&company.OptOuts},
		company.Limits.Columns(), []any{&sender.ID, &sender.Name, &sender.Country, &sender.Approved, &sender.Works}),
		func() error {
			if found == nil {
				found = &p
				if p.Company = company.OrNil(); p.Company != nil {
					p.Company.Senders = map[string]accounts.Sender{}
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
