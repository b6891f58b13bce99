package keys

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/accounts/letter"
	"intumwa/internal/postgres"
)

// A token is "id|secret": the row's id and 40 random letters and digits (200 bits). Such a secret needs no slow
// hash; its SHA-256 is stored.
const secretLength = 40

// Token is an API token without its secret. Commands print it in this form.
type Token struct {
	ID         int64      `json:"token_id"`
	UserID     int64      `json:"user_id"`
	Name       string     `json:"name"`
	CreatedAt  time.Time  `json:"created_at"`
	LastUsedAt *time.Time `json:"last_used_at"` // to the minute; nil when it was never used
	RevokedAt  *time.Time `json:"revoked_at"`
	accounts.TokenLimits
	Email string `json:"-"` // of its user; not set in a new token

	SystemID string `json:"system_id,omitempty"` // of a key of kind SMPP; "": a key of the HTTP API
	SMPPLimits
}

// Recorded returns what the audit log has of a token.
func (t Token) Recorded() map[string]any {
	recorded := map[string]any{"user_id": t.UserID, "name": t.Name, "scopes": t.Scopes}
	if t.ExpiresAt != nil {
		recorded["expires_at"] = t.ExpiresAt.UTC().Format(time.RFC3339)
	}
	if len(t.Networks) > 0 {
		recorded["networks"] = t.Networks
	}
	if t.SystemID != "" {
		recorded["system_id"], recorded["sessions"], recorded["window"], recorded["tps"], recorded["alphabet"] = t.SystemID,
			t.Sessions, t.Window, t.TPS, t.Alphabet
	}
	return recorded
}

const tokenColumns = `id, user_id, name, created_at, last_used_at, revoked_at, scopes, expires_at, networks,
	(select email from users where users.id = user_id), ` + smppColumns

const smppColumns = `coalesce(system_id, ''), coalesce(sessions, 0), coalesce("window", 0), coalesce(tps, 0),
	coalesce(alphabet, '')`

// CreateToken creates a token of the user with that email. The second result is its text, which is shown once and
// cannot be read again.
func (a *Store) CreateToken(ctx context.Context, email, name string, limits accounts.TokenLimits) (
	Token, string, error) {
	name, err := accounts.CleanName("token name", name)
	if err != nil {
		return Token{}, "", err
	}
	email = accounts.FoldEmail(email)
	user, err := accounts.One(ctx, a.pool, "reading a user", accounts.NoUser(email), pgx.RowTo[int64],
		`select id from users where email = $1`, email)
	if err != nil {
		return Token{}, "", err
	}
	return a.insertToken(ctx, user, name, limits)
}

// CreateOwnToken is [Store.CreateToken] by a user whose role allows it. [accounts.ErrTooMany] when the user's company,
// or a user without one, has [MaxTokens], even if several are created at once.
func (a *Store) CreateOwnToken(ctx context.Context, userID int64, name string, limits accounts.TokenLimits) (
	t Token, text string, err error) {
	if name, err = accounts.CleanName("token name", name); err != nil {
		return Token{}, "", err
	}
	err = a.withRoom(ctx, userID, func(in *Store) (err error) {
		t, text, err = in.insertToken(ctx, userID, name, limits)
		return err
	})
	return t, text, err
}

// withRoom calls insert in a transaction if the user may have one more token.
func (a *Store) withRoom(ctx context.Context, userID int64, insert func(in *Store) error) error {
	return pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		var may, active int
		if err := tx.QueryRow(ctx, `
			with people as (select id, role from users where id = $1 or company_id = (select company_id from users where id = $1)
				order by id for no key update)
			select count(*) from people where id = $1 and (role is null or role = any($2))`,
			userID, accounts.RolesWith(accounts.MayDevelop)).Scan(&may); err != nil {
			return fmt.Errorf("locking user %d: %w", userID, err)
		}
		if may == 0 { // the role has changed a moment ago
			return accounts.Errorf(accounts.ErrNotFound, "user %d may have no tokens", userID)
		}
		if err := tx.QueryRow(ctx, `
			select count(*) from api_tokens t join users u on u.id = t.user_id
			where (u.id = $1 or u.company_id = (select company_id from users where id = $1)) and t.revoked_at is null
			and coalesce(t.expires_at > now(), true)`,
			userID).Scan(&active); err != nil {
			return fmt.Errorf("counting the tokens of user %d: %w", userID, err)
		}
		if active >= MaxTokens {
			return accounts.Errorf(accounts.ErrTooMany, "user %d has %d tokens", userID, active)
		}
		return insert(a.In(tx))
	})
}

func (a *Store) insertToken(ctx context.Context, userID int64, name string, limits accounts.TokenLimits) (
	Token, string, error) {
	limits, err := cleanLimits(limits)
	if err != nil {
		return Token{}, "", err
	}
	secret := (rand.Text() + rand.Text())[:secretLength]
	hash := sha256.Sum256([]byte(secret))
	t := Token{UserID: userID, Name: name, TokenLimits: limits}
	err = a.pool.QueryRow(ctx,
		`insert into api_tokens (user_id, name, secret_hash, scopes, expires_at, networks) values ($1, $2, $3, $4, $5, $6)
			returning id, created_at`,
		userID, name, hash[:], limits.Scopes, limits.ExpiresAt, limits.Networks).Scan(&t.ID, &t.CreatedAt)
	if err != nil {
		return Token{}, "", fmt.Errorf("storing a token: %w", err)
	}
	if err := letter.WriteUser(ctx, a.pool, letter.Key, userID, letter.KeyValues{Name: name}); err != nil {
		return Token{}, "", err
	}
	a.forget(t.ID) // the id may be cached as unknown
	return t, strconv.FormatInt(t.ID, 10) + "|" + secret, nil
}

// RevokeToken revokes a token: at once in this process, in others when they get the notice. Revoking it again changes
// nothing.
func (a *Store) RevokeToken(ctx context.Context, id int64) error {
	tag, err := a.pool.Exec(ctx, `update api_tokens set revoked_at = coalesce(revoked_at, now()) where id = $1`, id)
	if err != nil {
		return fmt.Errorf("revoking token %d: %w", id, err)
	}
	if tag.RowsAffected() == 0 {
		return noToken(id)
	}
	a.forget(id)
	return nil
}

func noToken(id int64) error {
	return accounts.Errorf(accounts.ErrNotFound, "there is no token with id %d", id)
}

// MaxTokens is how many unrevoked tokens a company, or a user without one, may have.
const MaxTokens = 50

// tokensListed is the longest list of tokens.
const tokensListed = 2 * MaxTokens

// TokensOf lists a user's tokens, newest first: all valid ones, and the latest revoked and expired ones, up to a
// hundred in all.
func (a *Store) TokensOf(ctx context.Context, userID int64) ([]Token, error) {
	return a.tokens(ctx, `user_id = $1`, userID)
}

// TokensOfCompany lists the tokens of a company's people, as [Store.TokensOf].
func (a *Store) TokensOfCompany(ctx context.Context, company int64) ([]Token, error) {
	return a.tokens(ctx, `user_id in (select id from users where company_id = $1)`, company)
}

func (a *Store) tokens(ctx context.Context, condition string, of int64) ([]Token, error) {
	return postgres.All(ctx, a.pool, "listing tokens", pgx.RowToStructByPos[Token], `select * from (
			select `+tokenColumns+` from api_tokens where `+condition+`
			order by revoked_at is not null or coalesce(expires_at <= now(), false), id desc limit $2) listed order by id desc`,
		of, tokensListed)
}

// TokenByID returns a token without its secret.
func (a *Store) TokenByID(ctx context.Context, id int64) (Token, error) {
	return tokenByID(ctx, a.pool, id)
}

func tokenByID(ctx context.Context, db postgres.DB, id int64) (Token, error) {
	return accounts.One(ctx, db, "reading a token", noToken(id).Error(), pgx.RowToStructByPos[Token],
		`select `+tokenColumns+` from api_tokens where id = $1`, id)
}

// parseToken splits "id|secret"; ok is false when text does not have this form.
func parseToken(text string) (id int64, secret string, ok bool) {
	digits, secret, found := strings.Cut(text, "|")
	if !found || len(secret) != secretLength || digits == "" || digits[0] < '1' || digits[0] > '9' {
		return 0, "", false
	}
	id, err := strconv.ParseInt(digits, 10, 64)
	return id, secret, err == nil
}

// Tokens lists tokens, including revoked ones.
func (a *Store) Tokens(ctx context.Context, after int64, limit int) ([]Token, error) {
	return postgres.All(ctx, a.pool, "listing tokens", pgx.RowToStructByPos[Token],
		`select `+tokenColumns+` from api_tokens where id > $1 order by id limit $2`, after, limit)
}
