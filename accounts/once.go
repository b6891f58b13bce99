package accounts

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"intumwa/vault"
)

// KeepOnce keeps a text that the session's next page shows, such as a new API key. It is sealed under the session's
// token, of which the database has only the hash; a later text takes its place.
func (a *Accounts) KeepOnce(ctx context.Context, token, text string) error {
	sealed := vault.New(onceKey(token), "once").SealOctets([]byte(text))
	if _, err := a.pool.Exec(ctx, `update sessions set once = $2 where token_hash = $1`, hashToken(token), sealed); err != nil {
		return fmt.Errorf("keeping what is shown once: %w", err)
	}
	return nil
}

// TakeOnce answers what [Accounts.KeepOnce] kept, and forgets it; empty when there is nothing.
func (a *Accounts) TakeOnce(ctx context.Context, token string) (string, error) {
	var sealed []byte
	err := a.pool.QueryRow(ctx, `
		with held as (select id, once from sessions where token_hash = $1 and once is not null for update)
		update sessions s set once = null from held where s.id = held.id returning held.once`, hashToken(token)).Scan(&sealed)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("taking what is shown once: %w", err)
	}
	text, err := vault.New(onceKey(token), "once").OpenOctets(sealed)
	if err != nil {
		return "", fmt.Errorf("taking what is shown once: %w", err)
	}
	return string(text), nil
}

func onceKey(token string) *[32]byte {
	key := sha256.Sum256([]byte("shown once\x00" + token))
	return &key
}
