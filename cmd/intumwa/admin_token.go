package main

import "context"

type adminTokenCmd struct {
	Create adminTokenCreateCmd `cmd:"" help:"Create an API token; it is shown once."`
	Revoke adminTokenRevokeCmd `cmd:"" help:"Revoke an API token."`
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
		t, text, err := o.accounts().CreateToken(ctx, c.User, c.Name)
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

// Run revokes a token. It is refused everywhere within five seconds.
func (c *adminTokenRevokeCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	return a.run(ctx, p, func(o *operator) (any, error) {
		if err := o.accounts().RevokeToken(ctx, c.ID); err != nil {
			return nil, err
		}
		return adminRevokedToken{TokenID: c.ID, Revoked: true}, nil
	})
}
