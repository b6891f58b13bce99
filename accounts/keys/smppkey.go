package keys

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/netip"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/accounts/letter"
	"intumwa/internal/postgres"
)

// ScopeSMPP is the only scope of a key of kind SMPP: it binds, and works for no HTTP request.
const ScopeSMPP = "smpp"

// SMPPLimits are the limits of a key of kind SMPP.
type SMPPLimits struct {
	Sessions int `json:"sessions,omitempty"` // binds at a time, over all processes; a transceiver is one
	Window   int `json:"window,omitempty"`   // unanswered submit_sm of a bind
	TPS      int `json:"tps,omitempty"`      // segments a second, over all binds

	Alphabet string `json:"alphabet,omitempty"` // that its programs mean by data_coding 0; "" is AlphabetGSM7
}

// Values of SMPPLimits.Alphabet.
const (
	AlphabetGSM7   = "gsm7"
	AlphabetLatin1 = "latin1" // also ASCII
)

// Defaults and upper bounds of SMPPLimits.
var (
	DefaultSMPP = SMPPLimits{Sessions: 4, Window: 10, TPS: 20, Alphabet: AlphabetGSM7}
	MostSMPP    = SMPPLimits{Sessions: 100, Window: 100, TPS: 10_000}
)

// clean returns the limits with the defaults in place of zeros.
func (l SMPPLimits) clean() (SMPPLimits, error) {
	for _, limit := range []struct {
		name           string
		value          *int
		standard, most int
	}{{"sessions", &l.Sessions, DefaultSMPP.Sessions, MostSMPP.Sessions},
		{"window", &l.Window, DefaultSMPP.Window, MostSMPP.Window}, {"tps", &l.TPS, DefaultSMPP.TPS, MostSMPP.TPS}} {
		if *limit.value == 0 {
			*limit.value = limit.standard
		}
		if *limit.value < 1 || *limit.value > limit.most {
			return l, accounts.Errorf(accounts.ErrInvalid, "%s is a number from 1 to %d", limit.name, limit.most)
		}
	}
	l.Alphabet = cmp.Or(l.Alphabet, DefaultSMPP.Alphabet)
	if l.Alphabet != AlphabetGSM7 && l.Alphabet != AlphabetLatin1 {
		return l, accounts.Errorf(accounts.ErrInvalid, "alphabet is gsm7 or latin1")
	}
	return l, nil
}

// Lengths of what a key of kind SMPP binds with. SMPP 3.4, 5.2.1 and 5.2.2 allow 15 and 8 characters.
const (
	systemIDLength = 10
	passwordLength = 8
)

// CreateSMPPKey creates a key of kind SMPP for a user, as [Store.CreateOwnToken]. It works only from networks, which
// must not be empty. The password is shown once and cannot be read again.
func (a *Store) CreateSMPPKey(ctx context.Context, userID int64, name string, networks []netip.Prefix,
	limits SMPPLimits) (t Token, password string, err error) {
	if name, err = accounts.CleanName("key name", name); err != nil {
		return Token{}, "", err
	}
	if limits, err = limits.clean(); err != nil {
		return Token{}, "", err
	}
	if err := checkNetworks(networks); err != nil {
		return Token{}, "", err
	}
	t = Token{UserID: userID, Name: name, TokenLimits: accounts.TokenLimits{Scopes: []string{ScopeSMPP},
		Networks: networks}, SMPPLimits: limits,
		SystemID: randomText(systemIDLength, accounts.Alphanumerics[36:])}
	password = randomText(passwordLength, accounts.Alphanumerics)
	err = a.withRoom(ctx, userID, func(in *Store) error {
		if err := in.pool.QueryRow(ctx, `insert into api_tokens (user_id, name, secret_hash, scopes, networks, system_id,
			sessions, "window", tps, alphabet)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) returning id, created_at`, userID, name,
			passwordHash(a.key, t.SystemID, password),
			t.Scopes, networks, t.SystemID, limits.Sessions, limits.Window, limits.TPS, limits.Alphabet).Scan(
			&t.ID, &t.CreatedAt); err != nil {
			return fmt.Errorf("storing a key of kind SMPP: %w", err)
		}
		return letter.WriteUser(ctx, in.pool, letter.Key, userID, letter.KeyValues{Name: name})
	})
	if err != nil {
		return Token{}, "", err
	}
	a.forget(t.ID)
	return t, password, nil
}

// SMPPChange is the input of [Store.SetSMPPKey]; a nil or zero field stays as it is.
type SMPPChange struct {
	Networks []netip.Prefix
	SMPPLimits
}

// SetSMPPKey changes a key of kind SMPP and returns its new state. [accounts.ErrNotFound] for any other key.
func (a *Store) SetSMPPKey(ctx context.Context, id int64, change SMPPChange) (SMPPKey, error) {
	is, err := a.SMPPKeyByID(ctx, id)
	if err != nil {
		return SMPPKey{}, err
	}
	for _, set := range []struct {
		to   *int
		from int
	}{{&is.Sessions, change.Sessions}, {&is.Window, change.Window}, {&is.TPS, change.TPS}} {
		if set.from != 0 {
			*set.to = set.from
		}
	}
	is.Alphabet = cmp.Or(change.Alphabet, is.Alphabet)
	if is.SMPPLimits, err = is.clean(); err != nil {
		return SMPPKey{}, err
	}
	if change.Networks != nil {
		is.Networks = change.Networks
	}
	if err := checkNetworks(is.Networks); err != nil {
		return SMPPKey{}, err
	}
	_, err = accounts.Exec(ctx, a.pool, "changing a key of kind SMPP",
		`update api_tokens set networks = $2, sessions = $3, "window" = $4, tps = $5, alphabet = $6 where id = $1`,
		id, is.Networks, is.Sessions, is.Window, is.TPS, is.Alphabet)
	a.forget(id)
	return is, err
}

func checkNetworks(networks []netip.Prefix) error {
	switch {
	case len(networks) == 0:
		return accounts.Errorf(accounts.ErrInvalid, "a key of kind SMPP needs the networks from which it binds")
	case len(networks) > MaxNetworks:
		return accounts.Errorf(accounts.ErrInvalid, "a key has at most %d networks", MaxNetworks)
	}
	return nil
}

// ErrNetwork means that a key may not bind from the peer's address.
var ErrNetwork = errors.New("the address is in none of the key's networks")

// SMPPLogin returns the key that binds with this system_id and password from an address. [accounts.ErrUnauthenticated]:
// there is none, or it is revoked, has expired, or its user is disabled. [ErrNetwork]: its login is right.
func (a *Holders) SMPPLogin(ctx context.Context, systemID, password, address string) (Token, error) {
	hash := passwordHash(a.opts.Key, systemID, password)
	var stored []byte
	var id int64
	err := postgres.Each(ctx, a.pool, "looking up a system_id", []any{&id, &stored}, func() error { return nil }, `
		select t.id, t.secret_hash from api_tokens t join users u on u.id = t.user_id
		where t.system_id = $1 and t.revoked_at is null and u.disabled_at is null and coalesce(t.expires_at > now(), true)`,
		postgres.Text(systemID))
	if err != nil {
		return Token{}, err
	}
	if !hmac.Equal(hash, stored) {
		return Token{}, accounts.ErrUnauthenticated
	}
	t, err := tokenByID(ctx, a.pool, id)
	if err != nil {
		return Token{}, err
	}
	if len(t.Networks) == 0 || !t.From(address) {
		return t, ErrNetwork
	}
	return t, nil
}

// SMPPHolder returns the holder of a key of kind SMPP, at most two seconds old, as [Holders.Authenticate] does.
func (a *Holders) SMPPHolder(ctx context.Context, tokenID int64) (*accounts.Principal, error) {
	e, err := a.cache.get(ctx, tokenID)
	if err != nil {
		return nil, err
	}
	if e.principal == nil || e.principal.Token.Expired() || !e.principal.Token.May(ScopeSMPP) {
		return nil, accounts.ErrUnauthenticated
	}
	if e.firstUse() {
		a.lastUse.add(tokenID, postgres.Now())
	}
	return e.principal, nil
}

// SMPPKey is a key of kind SMPP, and its user's company.
type SMPPKey struct {
	Token

	Company     int64 // 0: none
	CompanyName string
}

// Usable reports whether the key may bind: its user may still be disabled.
func (k *SMPPKey) Usable() bool { return k.RevokedAt == nil && !k.Expired() }

const smppKeys = `select ` + tokenColumns + `, coalesce((select company_id from users where users.id = user_id), 0),
	coalesce((select c.name from companies c join users u on u.company_id = c.id where u.id = user_id), '')
	from api_tokens where system_id is not null and `

// SMPPKeys lists keys of kind SMPP with ids above after, at most limit; company 0: of all companies.
func (a *Store) SMPPKeys(ctx context.Context, company, after int64, limit int) ([]SMPPKey, error) {
	return postgres.All(ctx, a.pool, "listing keys of kind SMPP", pgx.RowToStructByPos[SMPPKey],
		smppKeys+`id > $1 and ($2 = 0 or user_id in (select id from users where company_id = $2)) order by id limit $3`,
		after, company, limit)
}

// SMPPKeysByID returns the keys of kind SMPP among ids, also those that are revoked.
func (a *Store) SMPPKeysByID(ctx context.Context, ids []int64) ([]SMPPKey, error) {
	return postgres.All(ctx, a.pool, "reading keys of kind SMPP", pgx.RowToStructByPos[SMPPKey],
		smppKeys+`id = any($1) order by id`, ids)
}

// SMPPKeyByID returns a key of kind SMPP; [accounts.ErrNotFound] for any other key.
func (a *Store) SMPPKeyByID(ctx context.Context, id int64) (SMPPKey, error) {
	return accounts.One(ctx, a.pool, "reading a key of kind SMPP", noToken(id).Error(), pgx.RowToStructByPos[SMPPKey],
		smppKeys+`id = $1`, id)
}

// SMPPKeysOf returns those keys of kind SMPP of ids that may still bind.
func (a *Holders) SMPPKeysOf(ctx context.Context, ids []int64) ([]Token, error) {
	return postgres.All(ctx, a.pool, "reading keys of kind SMPP", pgx.RowToStructByPos[Token], `select `+tokenColumns+
		` from api_tokens
		where id = any($1) and system_id is not null and revoked_at is null and coalesce(expires_at > now(), true)
			and user_id in (select id from users where disabled_at is null)`, ids)
}

// passwordHash is what the table has of a key of kind SMPP.
func passwordHash(key []byte, systemID, password string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("smpp\x00" + systemID + "\x00" + password))
	return mac.Sum(nil)
}

// randomText returns n random characters of an alphabet with at most 128 characters.
func randomText(n int, alphabet string) string {
	text, random := make([]byte, 0, n), make([]byte, 1)
	for len(text) < n {
		_, _ = rand.Read(random) // never fails
		if i := int(random[0] & 0x7F); i < len(alphabet) {
			text = append(text, alphabet[i])
		}
	}
	return string(text)
}
