package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/acts"
)

type adminUserCmd struct {
	Create adminUserCreateCmd `cmd:"" help:"Create a user."`
	List   adminUserListCmd   `cmd:"" help:"List users."`
}

type adminUserCreateCmd struct {
	Email         string `required:"" help:"Email, with which the user logs in."`
	Name          string `required:"" help:"The person's name."`
	PasswordStdin bool   `help:"Read the password from the first line of standard input (the only way to give it)."`
	Administrator bool   `help:"May see and approve every company in the dashboard."`
}

type adminUser struct {
	UserID int64  `json:"user_id"`
	Email  string `json:"email"`
}

// Run never takes the password from the command line, where other users of the machine could read it.
func (c *adminUserCreateCmd) Run(ctx context.Context, p *program, a *adminCmd) error {
	if !c.PasswordStdin {
		return errors.New("the password comes on standard input: say --password-stdin")
	}
	password, err := firstLine(p.stdin)
	if err != nil {
		return fmt.Errorf("reading the password: %w", err)
	}
	if utf8.RuneCountInString(password) < accounts.MinPassword { // people may not choose such a one; scripts may
		_, _ = fmt.Fprintf(p.stderr, "intumwa: warning: the password is shorter than %d characters, the least that people may choose\n", accounts.MinPassword)
	}
	return a.run(ctx, p, func(o *operator) (any, error) {
		var u accounts.User
		err := o.change(ctx, func(tx pgx.Tx) (acts.Entry, error) {
			var err error
			u, err = o.accounts().In(tx).CreateUser(ctx, accounts.NewUser{
				Email: c.Email, Name: c.Name, Password: password, Administrator: c.Administrator,
			})
			return acts.Entry{Act: "user.create", Subject: fmt.Sprintf("user %d", u.ID),
				After: map[string]any{"email": u.Email, "name": u.Name, "administrator": u.Administrator}}, err
		})
		if err != nil {
			return nil, err
		}
		return adminUser{UserID: u.ID, Email: u.Email}, nil
	})
}

func firstLine(r io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(r, 64<<10)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return strings.TrimRight(line, "\r\n"), nil
}
