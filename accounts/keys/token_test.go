package keys

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"intumwa/accounts"
)

// TestTokensAreLimited: a user has at most MaxTokens, even if several are created at once, and the list with revoked
// ones is bounded.
func TestTokensAreLimited(t *testing.T) {
	a := newWorld(t)
	u := a.User(t, "a@example.com")
	var made, refused atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 8 {
				switch _, _, err := a.keys.CreateOwnToken(t.Context(), u.ID, "x", accounts.TokenLimits{}); {
				case err == nil:
					made.Add(1)
				case errors.Is(err, accounts.ErrTooMany):
					refused.Add(1)
				default:
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if made.Load() != MaxTokens || refused.Load() != 64-MaxTokens {
		t.Fatalf("%d made, %d refused", made.Load(), refused.Load())
	}
	if _, err := a.Pool.Exec(t.Context(), `insert into api_tokens (user_id, name, secret_hash, revoked_at)
		select $1, 'old', sha256(n::text::bytea), now() from generate_series(1, 1000) n`, u.ID); err != nil {
		t.Fatal(err)
	}
	list, err := a.keys.TokensOf(t.Context(), u.ID)
	active := 0
	for i, k := range list {
		if k.RevokedAt == nil {
			active++
		}
		if i > 0 && k.ID >= list[i-1].ID {
			t.Error("not the newest first")
		}
	}
	if err != nil || active != MaxTokens || len(list) != 2*MaxTokens {
		t.Errorf("%d tokens are listed, of them %d active, %v", len(list), active, err)
	}
}

// A company's people share the limit and the list of tokens; a request belongs to the token's own user.
func TestTokensOfPeople(t *testing.T) {
	a := newWorld(t)
	owner := a.User(t, "owner@example.com")
	company := a.Company(t, owner.Email)
	developer := a.mustPerson(t, company.ID, "developer@example.com", accounts.RoleDeveloper)
	_, text, err := a.keys.CreateOwnToken(t.Context(), developer.ID, "theirs", accounts.TokenLimits{})
	if err != nil {
		t.Fatal(err)
	}
	if p, err := a.holders.Authenticate(t.Context(), text); err != nil || p.UserID != developer.ID || p.Company == nil ||
		p.Company.ID != company.ID || p.Company.OwnerID != owner.ID {
		t.Errorf("%+v, %v", p, err)
	}
	for range MaxTokens - 1 {
		if _, _, err := a.keys.CreateOwnToken(t.Context(), owner.ID, "own", accounts.TokenLimits{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []int64{owner.ID, developer.ID} {
		if _, _, err := a.keys.CreateOwnToken(t.Context(), id, "x", accounts.TokenLimits{}); !errors.Is(
			err, accounts.ErrTooMany) {
			t.Errorf("one more: %v", err)
		}
	}
	list, err := a.keys.TokensOfCompany(t.Context(), company.ID)
	if err != nil || len(list) != MaxTokens || list[MaxTokens-1].Email != developer.Email || list[0].Email != owner.Email {
		t.Errorf("%d tokens, %v", len(list), err)
	}
}
