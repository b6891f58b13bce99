package operations

import (
	"context"

	"intumwa/accounts"
	"intumwa/accounts/keys"
	"intumwa/accounts/people"
)

// CreateToken creates an API token of a user. own is true when the users create it themselves, for which their role and
// [keys.MaxTokens] must allow it. The result is its id and its text, which keep gets too.
func (a Actor) CreateToken(ctx context.Context, email string, own bool, name string, limits accounts.TokenLimits,
	keep Keep) (id int64, text string, err error) {
	err = a.do(ctx, locks, func(in within) (act, error) {
		u, err := in.people().UserByEmail(ctx, email)
		if err != nil {
			return act{}, err
		}
		var t keys.Token
		if own {
			t, text, err = in.keys().CreateOwnToken(ctx, u.ID, name, limits)
		} else {
			t, text, err = in.keys().CreateToken(ctx, email, name, limits)
		}
		if id = t.ID; err == nil {
			err = keep.keep(in.Tx, text)
		}
		return on("token.create", "token", id, u.Company, nil, t.Recorded()), err
	})
	return id, text, err
}

// RevokeToken revokes a token, and returns its user's company, 0 without one. [accounts.ErrNotFound] when may, unless
// nil, returns false.
func (a Actor) RevokeToken(ctx context.Context, id int64, may func(owner people.User) bool) (company int64, err error) {
	err = a.do(ctx, reads, func(in within) (act, error) {
		was, err := in.keys().TokenByID(ctx, id)
		if err != nil {
			return act{}, err
		}
		owner, err := in.people().UserByID(ctx, was.UserID)
		if err == nil && may != nil && !may(owner) {
			err = accounts.ErrNotFound
		}
		if err != nil {
			return act{}, err
		}
		company = owner.Company
		state := func(revoked bool) any { return fields{"user_id": was.UserID, "name": was.Name, "revoked": revoked} }
		return on("token.revoke", "token", id, company, state(was.RevokedAt != nil), state(true)),
			in.keys().RevokeToken(ctx, id)
	})
	return company, err
}
