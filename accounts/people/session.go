package people

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/internal/postgres"
	"intumwa/internal/vault"
)

const (
	sessionLife      = 30 * 24 * time.Hour // the longest life of a session
	secondFactorTime = 10 * time.Minute    // life of a session that waits for the second factor
	maxSessions      = 20                  // of one user; a further one replaces the oldest
	maxDevice        = 300                 // bytes of the User-Agent
	seenEvery        = time.Minute         // precision of SeenAt
)

// Session is a signed-in browser.
type Session struct {
	ID         int64
	User       User
	Passed     bool       // false: the password was right, the second factor is missing
	AdminUntil *time.Time // end of the administrator scope; nil: not open
	Address    string
	Device     string // the User-Agent
	CreatedAt  time.Time
	SeenAt     time.Time         // to the minute
	Company    *accounts.Company // of the user; nil when there is none
}

// May reports whether the session's user has a right in their company. A user without a company has every right.
func (s *Session) May(right accounts.Right) bool { return s.Company == nil || s.User.Role.May(right) }

// Browser is the client of a session, as the request names it.
type Browser struct{ Address, Device string }

// clean shortens and cleans text from an unauthenticated request.
func (b Browser) clean() Browser {
	text := strings.ToValidUTF8(b.Device, "")
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
	if len(text) > maxDevice {
		text = text[:maxDevice]
		for !utf8.ValidString(text) {
			text = text[:len(text)-1]
		}
	}
	b.Device = text
	return b
}

// newLinkToken returns 32 random bytes as text, for a cookie or a mailed link, and the hash to store.
func newLinkToken() (token string, hash []byte) {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails
	token = base64.RawURLEncoding.EncodeToString(random[:])
	return token, hashToken(token)
}

func hashToken(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

// OpenSession starts a session of a user whose password was checked, with a new token. When the user has a second
// factor, the session is not Passed until [Sessions.PassSession].
func (a *Sessions) OpenSession(ctx context.Context, u User, from Browser) (token string, passed bool, err error) {
	from = from.clean()
	token, hash := newLinkToken()
	err = pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		// Serialize the user's sign-ins, for maxSessions.
		if _, err := tx.Exec(ctx, `select from users where id = $1 for update`, u.ID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			delete from sessions where user_id = $1 and (expires_at < now() or id not in (
				select id from sessions where user_id = $1 and expires_at >= now() order by seen_at desc, id desc limit $2))`,
			u.ID, maxSessions-1); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `
			insert into sessions (token_hash, user_id, address, device, passed, expires_at)
			select $2, id, $3, $4, factor_confirmed_at is null,
				now() + case when factor_confirmed_at is null then $6::interval else $5::interval end
			from users where id = $1 returning passed`, u.ID, hash, from.Address, from.Device, secondFactorTime,
			sessionLife).Scan(&passed)
	})
	if err != nil {
		return "", false, fmt.Errorf("opening a session of user %d: %w", u.ID, err)
	}
	return token, passed, nil
}

// SessionByToken returns the session of a cookie, and updates SeenAt. [accounts.ErrUnauthenticated] when the session
// has ended or was unused for longer than idle.
func (a *Sessions) SessionByToken(ctx context.Context, token string, idle time.Duration) (Session, error) {
	if len(token) != base64.RawURLEncoding.EncodedLen(32) {
		return Session{}, accounts.ErrUnauthenticated
	}
	var s Session
	var company accounts.Company
	err := a.pool.QueryRow(ctx, `
		select s.id, s.passed, s.admin_until, s.address, s.device, s.created_at, s.seen_at,
		       u.id, u.email, u.name, u.administrator, u.created_at, u.language, coalesce(u.company_id, 0), coalesce(u.role,
		''),
		       `+accounts.JoinedCompany+`
		from sessions s join users u on u.id = s.user_id left join companies c on c.id = u.company_id
		where s.token_hash = $1 and s.expires_at > now() and s.seen_at > now() - $2::interval and u.disabled_at is null`,
		hashToken(token), idle).Scan(append([]any{
		&s.ID, &s.Passed, &s.AdminUntil, &s.Address, &s.Device, &s.CreatedAt, &s.SeenAt,
		&s.User.ID, &s.User.Email, &s.User.Name, &s.User.Administrator, &s.User.CreatedAt, &s.User.Language, &s.User.Company,
		&s.User.Role}, company.Joined()...)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return Session{}, accounts.ErrUnauthenticated
	}
	if err != nil {
		return Session{}, fmt.Errorf("reading a session: %w", err)
	}
	s.Company = company.OrNil()
	if postgres.Now().Sub(s.SeenAt) >= seenEvery {
		if _, err := accounts.Exec(ctx, a.pool, "noting that a session was seen",
			`update sessions set seen_at = now() where id = $1`, s.ID); err != nil {
			return Session{}, err
		}
	}
	return s, nil
}

// PassSession completes a session after the second factor was checked, and gives it a new token.
func (a *Sessions) PassSession(ctx context.Context, s Session) (token string, err error) {
	return a.renew(ctx, s, `passed = true, expires_at = now() + $3::interval`, sessionLife)
}

// EnterAdmin opens the administrator scope for a time and gives the session a new token. Check the password or a code
// before.
func (a *Sessions) EnterAdmin(ctx context.Context, s Session, lasts time.Duration) (token string, err error) {
	if !s.User.Administrator {
		return "", accounts.ErrUnauthenticated
	}
	return a.renew(ctx, s, `admin_until = now() + $3::interval`, lasts)
}

// LeaveAdmin closes the administrator scope.
func (a *Sessions) LeaveAdmin(ctx context.Context, s Session) error {
	_, err := accounts.Exec(ctx, a.pool, "leaving the administrators' scope",
		`update sessions set admin_until = null where id = $1`, s.ID)
	return err
}

func (a *Sessions) renew(ctx context.Context, s Session, change string, lasts time.Duration) (string, error) {
	token, hash := newLinkToken()
	n, err := accounts.Exec(ctx, a.pool, fmt.Sprintf("renewing session %d", s.ID),
		`update sessions set token_hash = $2, once = '{}', `+change+` where id = $1`, s.ID, hash, lasts)
	switch {
	case err != nil:
		return "", err
	case n == 0:
		return "", accounts.ErrUnauthenticated
	}
	return token, nil
}

// NewDevice returns a cookie by which [SignIn.KnownDevice] recognizes a browser where the user has signed in. It is
// signed with the hash of the user's password, so a new password ends it.
func (a *SignIn) NewDevice(ctx context.Context, email string) (device string, err error) {
	device, _ = newLinkToken()
	signature, err := a.signDevice(ctx, email, device)
	return device + signature, err
}

// KnownDevice reports whether the cookie comes from NewDevice for the user with that email.
func (a *SignIn) KnownDevice(ctx context.Context, email, device string) bool {
	half := base64.RawURLEncoding.EncodedLen(32)
	if len(device) != 2*half {
		return false
	}
	signature, err := a.signDevice(ctx, email, device[:half])
	return err == nil && hmac.Equal([]byte(signature), []byte(device[half:]))
}

func (a *SignIn) signDevice(ctx context.Context, email, device string) (string, error) {
	email = accounts.FoldEmail(email)
	var key string
	if err := a.pool.QueryRow(ctx, `select password_hash from users where email = $1`, email).Scan(&key); err != nil {
		return "", fmt.Errorf("signing the cookie of a browser: %w", err)
	}
	mac := hmac.New(sha256.New, []byte(key))
	_, _ = mac.Write([]byte("device\x00" + device + email)) // a hash never fails
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), nil
}

// Sessions lists a user's sessions, the last seen first.
func (a *Sessions) Sessions(ctx context.Context, userID int64, idle time.Duration) ([]Session, error) {
	return postgres.All(ctx, a.pool, "listing sessions", func(row pgx.CollectableRow) (s Session, err error) {
		s.Passed = true
		err = row.Scan(&s.ID, &s.Address, &s.Device, &s.CreatedAt, &s.SeenAt)
		return s, err
	}, `select id, address, device, created_at, seen_at from sessions
		where user_id = $1 and passed and expires_at > now() and seen_at > now() - $2::interval
		order by seen_at desc, id desc`, userID, idle)
}

// EndSession ends a session of that user; [accounts.ErrNotFound] for another user's session, or an ended one.
func (a *Sessions) EndSession(ctx context.Context, userID, id int64) error {
	n, err := accounts.Exec(ctx, a.pool, fmt.Sprintf("ending session %d", id),
		`delete from sessions where id = $2 and user_id = $1`, userID, id)
	if err == nil && n == 0 {
		err = accounts.Errorf(accounts.ErrNotFound, "there is no session with id %d", id)
	}
	return err
}

// EndSessions ends all of a user's sessions except one (0: all).
func (a *Sessions) EndSessions(ctx context.Context, userID, but int64) error {
	_, err := accounts.Exec(ctx, a.pool, fmt.Sprintf("ending the sessions of user %d", userID),
		`with ended as (delete from sessions where user_id = $1 and id <> $2)
		select `+postgres.Confirming, userID, but) // a COMMIT without an answer may have ended them
	return err
}

// Sweep deletes ended sessions and mailed links.
func (a *Sessions) Sweep(ctx context.Context, idle time.Duration) error {
	_, err := accounts.Exec(ctx, a.pool, "sweeping ended sessions",
		`delete from sessions where expires_at < now() or seen_at < now() - $1::interval`, idle)
	if err == nil {
		_, err = accounts.Exec(ctx, a.pool, "sweeping ended links", `delete from mail_links where expires_at < now()`)
	}
	return err
}

// KeepOnce stores a text, such as a new webhook secret, for the next page of its kind in the session. It is encrypted
// with a key derived from the session's token, of which the database has only the hash. A later text of the kind
// replaces it.
func (a *Sessions) KeepOnce(ctx context.Context, token, kind, text string) error {
	_, err := a.keepOnce(ctx, token, kind, text, ``)
	return err
}

// KeepFirst is [Sessions.KeepOnce], but [accounts.ErrExists] if the session has a text of the kind, or has ended.
func (a *Sessions) KeepFirst(ctx context.Context, token, kind, text string) error {
	n, err := a.keepOnce(ctx, token, kind, text, ` and not once ? $2`)
	if err == nil && n == 0 {
		err = accounts.ErrExists
	}
	return err
}

// maxOnce is how many bytes of texts a session may have when a further one is stored. With more, they are forgotten: a
// visitor who never opens the page that takes them could store any number.
const maxOnce = 64 << 10

func (a *Sessions) keepOnce(ctx context.Context, token, kind, text, condition string) (int64, error) {
	sealed := vault.New(onceKey(token), kind).Seal(0, text)
	return accounts.Exec(ctx, a.pool, "keeping what is shown once",
		`update sessions set once = case when octet_length(once::text) <= $4 then once
			else '{}' end || jsonb_build_object($2::text, $3::text)
			where token_hash = $1`+condition, hashToken(token), kind, sealed, maxOnce)
}

// TakeOnce returns and deletes the texts of [Sessions.KeepOnce] whose kinds begin with kind, one a line; empty when
// there are none.
func (a *Sessions) TakeOnce(ctx context.Context, token, kind string) (string, error) {
	type kept struct{ Kind, Sealed string }
	all, err := postgres.All(ctx, a.pool, "taking what is shown once", pgx.RowToStructByPos[kept], `
		with kept as (select id, once, array(select k from jsonb_object_keys(once) k where starts_with(k, $2)) as kinds
			from sessions where token_hash = $1 and once <> '{}' for update),
		taken as (update sessions s set once = s.once - kept.kinds from kept where s.id = kept.id and kept.kinds <> '{}')
		select k, once ->> k from kept, unnest(kinds) k order by k`, hashToken(token), kind)
	texts := make([]string, len(all))
	for i, k := range all {
		if texts[i], err = vault.New(onceKey(token), k.Kind).Open(0, k.Sealed); err != nil {
			break
		}
	}
	if err != nil {
		return "", fmt.Errorf("taking what is shown once: %w", err)
	}
	return strings.Join(texts, "\n"), nil
}

func onceKey(token string) *[32]byte {
	key := sha256.Sum256([]byte("shown once\x00" + token))
	return &key
}
