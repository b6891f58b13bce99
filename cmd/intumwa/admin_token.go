package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/acts"
)

type adminTokenCmd struct {
	Create adminTokenCreateCmd `cmd:"" help:"Create an API token; it is shown once."`
	Revoke adminTokenRevokeCmd `cmd:"" help:"Revoke an API token."`
	List   adminTokenListCmd   `cmd:"" help:"List API tokens, without their secrets."`
}

type adminTokenCreateCmd struct {
	User string `required:"" help:"Email of the user whom it belongs to." placeholder:"EMAIL"`
	Name string `required:"" help:"What it is for."`
}

type adminToken struct {
	TokenID int64  `json:"token_id"`
	Token   string `json:"token"`
}

// Run creates a token.
func (c *adminTokenCreateCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	return a.run(ctx, p, func(o *operator) (any, error) {
		var t accounts.Token
		var text string
		err := o.change(ctx, func(tx pgx.Tx) (acts.Entry, error) {
			var err error
			t, text, err = o.accounts().In(tx).CreateToken(ctx, c.User, c.Name)
			return acts.Entry{Act: "token.create", Subject: fmt.Sprintf("token %d", t.ID),
				After: map[string]any{"user_id": t.UserID, "name": t.Name}}, err
		})
		if err != nil {
			return nil, err
		}
		return adminToken{TokenID: t.ID, Token: text}, nil
	})
}

type adminTokenRevokeCmd struct {
	ID int64 `required:"" help:"Number before the bar in the token."`
}

type adminRevokedToken struct {
	TokenID int64 `json:"token_id"`
	Revoked bool  `json:"revoked"`
}

// Run revokes a token. It is refused everywhere at once.
func (c *adminTokenRevokeCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	return a.run(ctx, p, func(o *operator) (any, error) {
		err := o.change(ctx, func(tx pgx.Tx) (acts.Entry, error) {
			users := o.accounts().In(tx)
			before, err := users.TokenByID(ctx, c.ID)
			if err != nil {
				return acts.Entry{}, err
			}
			return acts.Entry{Act: "token.revoke", Subject: fmt.Sprintf("token %d", c.ID),
				Before: map[string]any{"user_id": before.UserID, "name": before.Name, "revoked": before.RevokedAt != nil},
				After:  map[string]any{"user_id": before.UserID, "name": before.Name, "revoked": true}}, users.RevokeToken(ctx, c.ID)
		})
		if err != nil {
			return nil, err
		}
		return adminRevokedToken{TokenID: c.ID, Revoked: true}, nil
	})
}
