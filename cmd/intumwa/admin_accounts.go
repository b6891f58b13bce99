package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"intumwa/accounts"
	"intumwa/accounts/keys"
	"intumwa/accounts/people"
)

type adminUserCmd struct {
	Create  adminUserCreateCmd `cmd:"" help:"Create a user."`
	List    adminUserListCmd   `cmd:"" help:"List users."`
	Disable adminUserChange    `cmd:"" help:"Refuse a user's sign-in and API tokens, at once."`
	Enable  adminUserChange    `cmd:"" help:"Let a disabled user in again."`
	Demote  adminUserChange    `cmd:"" help:"Take the administration away from a user."`
	Role    adminUserRoleCmd   `cmd:"" help:"Give a person of a company another role, or remove them, at once."`
	Reset   adminUserChange    `cmd:"" help:"Void a user's password and second factor, with a mail."`
}

// adminUserChange is each of operations.UserChanges, by the name of its command.
type adminUserChange struct {
	Email  string `required:"" aliases:"user" help:"Email of the user."`
	Reason string `aliases:"note" help:"Why; it stays in the audit log."`
	change string
}

// AfterApply is a hook of kong.
func (c *adminUserChange) AfterApply(command *kong.Context) error {
	c.change = command.Selected().Name
	return nil
}

// do changes the user and ends the user's sessions.
func (c *adminUserChange) do(ctx context.Context, o *operator) (any, error) {
	u, err := o.people().UserByEmail(ctx, c.Email)
	if err != nil {
		return nil, err
	}
	return done(o.by(nil).SetUser(ctx, u.ID, c.change, c.Reason))
}

type adminUserRoleCmd struct {
	Email string `required:"" aliases:"user" help:"Email of the user."`
	Role  string `required:"" help:"owner, sender, developer, finance, reader; none removes the person."`
}

// do changes a role, for instance when a company has lost its owner.
func (c *adminUserRoleCmd) do(ctx context.Context, o *operator) (any, error) {
	u, err := o.people().UserByEmail(ctx, c.Email)
	if err != nil {
		return nil, err
	}
	if u.Company == 0 {
		return nil, fmt.Errorf("%s belongs to no company", u.Email)
	}
	role := accounts.Role(c.Role)
	if c.Role == "none" {
		role = ""
	}
	err = o.by(nil).SetRole(ctx, u.Company, u.ID, role)
	return done(object{{"user_id", u.ID}, {"email", u.Email}, {"company_id", orNull(u.Company)}, {"role", orNull(role)}},
		err)
}

type adminUserCreateCmd struct {
	Email         string `required:"" aliases:"user" help:"Email, with which the user logs in."`
	Name          string `required:"" help:"The person's name."`
	PasswordStdin bool   `help:"Read the password from the first line of standard input (the only way to give it)."`
	Administrator bool   `help:"May see and approve every company in the dashboard."`
}

// do reads the password from standard input: other users of the machine can read a command line.
func (c *adminUserCreateCmd) do(ctx context.Context, o *operator) (any, error) {
	if !c.PasswordStdin {
		return nil, errors.New("the password comes on standard input: add --password-stdin")
	}
	password, err := firstLine(o.stdin)
	if err != nil {
		return nil, fmt.Errorf("reading the password: %w", err)
	}
	if utf8.RuneCountInString(password) < people.MinPassword { // people need a longer one; scripts do not
		_, _ = fmt.Fprintf(o.stderr, "intumwa: warning: the password is shorter than %d characters, the least that people "+
			"may choose\n", people.MinPassword)
	}
	u, err := o.by(nil).CreateUser(ctx, people.NewUser{Email: c.Email, Name: c.Name, Password: password,
		Administrator: c.Administrator})
	return done(userMade{u.ID, u.Email}, err)
}

type userMade struct {
	ID    int64  `json:"user_id"`
	Email string `json:"email"`
}

func firstLine(r io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(r, 64<<10)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return strings.TrimRight(line, "\r\n"), nil
}

type adminUserListCmd struct{ listFlags }

func (c *adminUserListCmd) do(ctx context.Context, o *operator) (any, error) {
	return collectByID(ctx, c.listFlags, o.people().Users, func(u people.User) any {
		return object{{"user_id", u.ID}, {"email", u.Email}, {"name", u.Name}, {"administrator", u.Administrator},
			{"disabled", u.Disabled}, {"created_at", u.CreatedAt},
			{"company_id", orNull(u.Company)}, {"role", orNull(u.Role)}}
	})
}

type adminTokenCmd struct {
	Create adminTokenCreateCmd `cmd:"" help:"Create an API token; it is shown once."`
	Revoke adminTokenRevokeCmd `cmd:"" help:"Revoke an API token."`
	List   adminTokenListCmd   `cmd:"" help:"List API tokens, without their secrets."`
}

type adminTokenCreateCmd struct {
	User string `required:"" aliases:"email" help:"Email of the user whom it belongs to." placeholder:"EMAIL"`
	Name string `required:"" help:"Its purpose."`

	Scope   []string `help:"Its rights: send, read, or both." default:"send,read"`
	Expires *instant `help:"When it expires: a time or a date (UTC). Without it: never." placeholder:"T"`
	Network []string `help:"Networks or addresses from which alone it works, 10 at most." placeholder:"CIDR"`
}

func (c *adminTokenCreateCmd) do(ctx context.Context, o *operator) (any, error) {
	networks, err := keys.ParseNetworks(strings.Join(c.Network, ","))
	switch {
	case err != nil:
		return nil, err
	case c.Network != nil && len(networks) == 0: // an empty variable must not make a token without limits
		return nil, errors.New("--network: it names no network")
	case len(c.Scope) == 0:
		return nil, errors.New("--scope: it names no scope")
	}
	limits := accounts.TokenLimits{Scopes: c.Scope, Networks: networks}
	if c.Expires != nil {
		limits.ExpiresAt = new(c.Expires.moment())
	}
	id, text, err := o.by(nil).CreateToken(ctx, c.User, false, c.Name, limits, nil)
	return done(tokenMade{id, text}, err)
}

type tokenMade struct {
	ID   int64  `json:"token_id"`
	Text string `json:"token"`
}

type adminTokenRevokeCmd struct {
	ID int64 `required:"" help:"Number before the bar in the token."`
}

// do revokes a token. Every process refuses it at once.
func (c *adminTokenRevokeCmd) do(ctx context.Context, o *operator) (any, error) {
	_, err := o.by(nil).RevokeToken(ctx, c.ID, nil)
	return done(tokenRevoked{c.ID, true}, err)
}

type tokenRevoked struct {
	ID      int64 `json:"token_id"`
	Revoked bool  `json:"revoked"`
}

type adminTokenListCmd struct {
	listFlags

	User string `aliases:"email" help:"Only those of the user with this email." placeholder:"EMAIL"`
}

// do lists tokens without their secrets, which are not stored.
func (c *adminTokenListCmd) do(ctx context.Context, o *operator) (any, error) {
	if c.User == "" {
		return collectByID(ctx, c.listFlags, o.keys().Tokens, asIs)
	}
	user, err := o.people().UserByEmail(ctx, c.User)
	if err != nil {
		return nil, err
	}
	return done(o.keys().TokensOf(ctx, user.ID))
}

type adminTestNumberCmd struct {
	Set adminTestNumberSetCmd `cmd:"" help:"Give a user a test number without a one-time code."`
}

type adminTestNumberSetCmd struct {
	User     string `required:"" aliases:"email" help:"Email of the user." placeholder:"EMAIL"`
	Number   string `required:"" aliases:"to" help:"The number, in any form that a send accepts."`
	Verified bool   `help:"It may receive test messages at once."`
}

// do sets a test number on the operator's authority, with no code.
func (c *adminTestNumberSetCmd) do(ctx context.Context, o *operator) (any, error) {
	number, ok := planOf(o.config).Parse(c.Number)
	if !ok {
		return nil, fmt.Errorf("%q is not a valid Burundi (+257) number", c.Number)
	}
	return done(o.by(nil).SetTestNumber(ctx, c.User, number, c.Verified))
}
