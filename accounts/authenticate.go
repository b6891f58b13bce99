package accounts

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/sms"
)

// Authenticate says who holds a token, given the token's text: what follows "Bearer " in the Authorization
// header. rule api 5
//
// It answers from memory when Postgres was asked about the token within the last two seconds and no notice came
// since ([Accounts.ForgetUser]), so a revocation or an approval made elsewhere shows at once, and within that time
// when notices are not heard, and so does a token whose id somebody tried before it was made. The error is [ErrUnauthenticated], or Postgres' trouble.
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
	known := &e.secretHash // of an unknown token: zeros, compared all the same
	if subtle.ConstantTimeCompare(hash[:], known[:]) != 1 || e.principal == nil {
		return nil, ErrUnauthenticated
	}
	if e.noteUse() {
		a.lastUse.note(id, time.Now())
	}
	return e.principal, nil
}

// Recognize tells whether a token was right when Postgres was last asked about it, by this process and however long
// ago. It asks nobody: it is for telling whom to spend a look-up on. Who holds the token now says [Accounts.Authenticate].
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

// Fresh is p as Postgres has it now: read after the call began, whatever the cache says. Ask it before refusing a
// customer on cached data, so that an approval made a moment ago counts at once.
//
// Calls for one token share a read, and its reads are at least 100 ms apart, so a customer who is refused over and
// over waits rather than loading Postgres. The error is [ErrUnauthenticated] when the token was revoked meanwhile.
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
	e, err := a.cache.fresh(ctx, p.TokenID)
	if err != nil {
		return nil, err
	}
	if e.principal == nil {
		return nil, ErrUnauthenticated
	}
	return e.principal, nil
}

// PrincipalOf is a user who is calling without a token, as Postgres has them now: somebody who has signed in. The error
// is [ErrNotFound] when there is no such user, or Postgres' trouble.
func (a *Accounts) PrincipalOf(ctx context.Context, userID int64) (*Principal, error) {
	rows, err := a.pool.Query(ctx, `
		select u.id, ''::bytea, `+principalColumns+`
		from users u `+strings.ReplaceAll(principalJoins, "USER", "u.id")+`
		where u.id = $1`, userID)
	var p *Principal
	if err == nil {
		p, _, err = collectPrincipal(rows, 0)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading user %d: %w", userID, err)
	case p == nil:
		return nil, &mistake{ErrNotFound, fmt.Sprintf("there is no user %d", userID)}
	}
	return p, nil
}

// load reads everything about a token in one statement. An unknown or revoked token is an entry without a principal.
func (a *Accounts) load(ctx context.Context, tokenID int64) (*entry, error) {
	rows, err := a.pool.Query(ctx, `
		select t.user_id, t.secret_hash, `+principalColumns+`
		from api_tokens t `+strings.ReplaceAll(principalJoins, "USER", "t.user_id")+`
		where t.id = $1 and t.revoked_at is null`, tokenID)
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

// What is read of a principal beside the user's id and the token's hash: a row for each sender of the company, or one
// row without. USER stands for the column with the user's id.
const (
	principalColumns = `n.phone_number,
		       c.id, c.name, c.approved, c.verified, c.smart_encoding,
		       s.id, s.name, s.country, s.approved`
	principalJoins = `left join test_numbers n on n.user_id = USER and n.verified_at is not null
		left join companies c on c.owner_id = USER
		left join senders s on s.company_id = c.id`
)

// collectPrincipal reads the rows to their end; without any the principal is nil.
func collectPrincipal(rows pgx.Rows, tokenID int64) (found *Principal, hash []byte, err error) {
	var (
		p          = Principal{TokenID: tokenID}
		testNumber *string
		company    struct {
			id                                *int64
			name                              *string
			approved, verified, smartEncoding *bool
		}
		sender struct {
			id            *int64
			name, country *string
			approved      *bool
		}
	)
	_, err = pgx.ForEachRow(rows, []any{
		&p.UserID, &hash, &testNumber,
		&company.id, &company.name, &company.approved, &company.verified, &company.smartEncoding,
		&sender.id, &sender.name, &sender.country, &sender.approved,
	}, func() error {
		if found == nil {
			found = &p
			if testNumber != nil {
				p.TestNumber = sms.Number(*testNumber)
			}
			if company.id != nil {
				p.Company = &Company{
					ID: *company.id, OwnerID: p.UserID, Name: *company.name,
					Approved: *company.approved, Verified: *company.verified, SmartEncoding: *company.smartEncoding,
					Senders: map[string]Sender{},
				}
			}
		}
		if sender.id != nil {
			p.Company.Senders[*sender.name] = Sender{
				ID: *sender.id, Name: *sender.name, Country: *sender.country, Approved: *sender.approved,
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return found, hash, nil
}
