package people

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/accounts/letter"
)

// LinkLife is how long a mailed link works.
const LinkLife = time.Hour

// maxLinks is how many links to one address may be open at once; a new one replaces the oldest.
const maxLinks = 5

const (
	linkSignUp     = "sign-up"
	linkPassword   = "password"
	linkInvitation = "invitation"
	linkNone       = "none" // opens nothing, and is mailed to nobody
)

// Link is the content of a mailed link. Its holder can read the mailbox Email.
type Link struct {
	Email, Name, Language string

	Company int64 // of an invitation
	Role    accounts.Role
}

const linkColumns = `email, name, language, coalesce(company_id, 0), coalesce(role, '')`

func (l *Link) columns() []any { return []any{&l.Email, &l.Name, &l.Language, &l.Company, &l.Role} }

// BeginSignUp creates a link for signing up with an e-mail address. Send its token by mail only. The user and password
// are created by the link's holder, so an account cannot be prepared in another person's name. [accounts.ErrExists]
// when there is such a user; do not show this to the visitor.
func (a *SignIn) BeginSignUp(ctx context.Context, n NewUser) (token string, err error) {
	email, name, err := cleanPerson(n.Email, n.Name)
	if err != nil {
		return "", err
	}
	token, made, err := a.createLink(ctx, linkSignUp, Link{Email: email, Name: name, Language: n.Language}, false)
	if err == nil && !made {
		err = accounts.Errorf(accounts.ErrExists, "a user with the email %s exists already", email)
	}
	return token, err
}

// BeginReset creates a link for choosing a new password. [accounts.ErrNotFound] when there is no such user; do not show
// this to the visitor.
func (a *SignIn) BeginReset(ctx context.Context, email, language string) (token string, err error) {
	token, made, err := a.createLink(ctx, linkPassword, Link{Email: accounts.FoldEmail(email), Language: language}, true)
	if err == nil && !made {
		err = accounts.Errorf(accounts.ErrNotFound, "there is no user with that email")
	}
	return token, err
}

// createLink runs the same statements with the same changes whether it creates a link or not, and then stores one that
// opens nothing: its duration does not show which, however long a commit takes.
func (a *SignIn) createLink(ctx context.Context, purpose string, l Link, forUser bool) (token string, made bool,
	err error) {
	token, hash := newLinkToken()
	err = pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `
			delete from mail_links where email = $1 and purpose in ($2, $4) and id not in (
				select id from mail_links where email = $1 and purpose in ($2, $4) and expires_at > now() order by id desc
					limit $3)`,
			l.Email, purpose, maxLinks-1, linkNone); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `
			insert into mail_links (purpose, token_hash, email, name, language, expires_at)
			select case when exists (select from users where email = $3) = $7 then $1 else $8 end, $2, $3, $4, $5,
				now() + $6::interval
			returning purpose = $1`,
			purpose, hash, l.Email, l.Name, knownLanguage(l.Language), LinkLife, forUser, linkNone).Scan(&made)
	})
	if err != nil {
		return "", false, fmt.Errorf("making a link of purpose %s: %w", purpose, err)
	}
	return token, made, nil
}

// SignUpLink returns a sign-up link without using it up; [accounts.ErrNotFound] when it is unknown, used or expired.
func (a *SignIn) SignUpLink(ctx context.Context, token string) (Link, error) {
	return a.link(ctx, linkSignUp, token)
}

// ResetLink returns a link for a new password, as [SignIn.SignUpLink].
func (a *SignIn) ResetLink(ctx context.Context, token string) (Link, error) {
	return a.link(ctx, linkPassword, token)
}

func (a *SignIn) link(ctx context.Context, purpose, token string) (l Link, err error) {
	err = a.pool.QueryRow(ctx,
		`select `+linkColumns+` from mail_links where token_hash = $1 and purpose = $2 and expires_at > now()`,
		hashToken(token), purpose).Scan(l.columns()...)
	return l, linkError(err)
}

// takeLink uses a link up and ends the others to its address. It locks all of them in order: two may be used at once.
func takeLink(ctx context.Context, tx pgx.Tx, purpose, token string) (l Link, err error) {
	err = tx.QueryRow(ctx, `
		with open as (
			select id from mail_links where purpose = $2 and email = (
				select email from mail_links where token_hash = $1 and purpose = $2 and expires_at > now())
			order by id for update
		), ended as (
			delete from mail_links where id in (select id from open) returning *
		)
		select `+linkColumns+` from ended where token_hash = $1`,
		hashToken(token), purpose).Scan(l.columns()...)
	return l, linkError(err)
}

func linkError(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return accounts.Errorf(accounts.ErrNotFound, "the link does not work any more")
	}
	if err != nil {
		return fmt.Errorf("looking a link up: %w", err)
	}
	return nil
}

// FinishSignUp creates the user of a sign-up link. The errors are [accounts.ErrNotFound] for an invalid link,
// [accounts.ErrInvalid] for the password, [accounts.ErrExists] when the user was created meanwhile.
func (a *SignIn) FinishSignUp(ctx context.Context, token, password string) (User, error) {
	return a.finish(ctx, linkSignUp, token, password, func(pgx.Tx, User) error { return nil })
}

func (a *SignIn) finish(ctx context.Context, purpose, token, password string, record func(pgx.Tx, User) error) (
	u User, err error) {
	hash, err := hashNewPassword(ctx, password)
	if err != nil {
		return User{}, err
	}
	err = pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		l, err := takeLink(ctx, tx, purpose, token)
		if err != nil {
			return err
		}
		u = User{Email: l.Email, Name: l.Name, Language: l.Language, Company: l.Company, Role: l.Role}
		err = tx.QueryRow(ctx, `
			insert into users (email, name, password_hash, language, company_id, role) values ($1, $2, $3, $4, nullif($5, 0),
				nullif($6, ''))
			returning id, created_at`,
			u.Email, u.Name, hash, u.Language, u.Company, string(u.Role)).Scan(&u.ID, &u.CreatedAt)
		if accounts.IsUnique(err, "users_email_key") {
			return accounts.Errorf(accounts.ErrExists, "a user with the email %s exists already", u.Email)
		}
		if err != nil {
			return fmt.Errorf("storing a user: %w", err)
		}
		return record(tx, u)
	})
	return u, err
}

// FinishReset sets the password of the link's user and ends all their sessions. A second factor stays on.
func (a *SignIn) FinishReset(ctx context.Context, token, password string) (u User, err error) {
	hash, err := hashNewPassword(ctx, password)
	if err != nil {
		return User{}, err
	}
	err = pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		l, err := takeLink(ctx, tx, linkPassword, token)
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `update users set password_hash = $2 where email = $1 returning `+userColumns, l.Email,
			hash)
		if err == nil {
			u, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[User])
		}
		if err == nil {
			_, err = tx.Exec(ctx, `delete from sessions where user_id = $1`, u.ID)
		}
		if err != nil {
			return fmt.Errorf("storing a password: %w", err)
		}
		return letter.WriteUser(ctx, tx, letter.Password, u.ID, nil)
	})
	return u, err
}

// ChangePassword replaces a user's password and ends all their other sessions. [accounts.ErrUnauthenticated] when
// present is not the current password.
func (a *SignIn) ChangePassword(ctx context.Context, s Session, present, password string) error {
	if _, err := a.Login(ctx, s.User.Email, present); err != nil {
		return err
	}
	hash, err := hashNewPassword(ctx, password)
	if err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `delete from mail_links where email = $1 and purpose = $2`, s.User.Email,
			linkPassword); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `update users set password_hash = $2 where id = $1`, s.User.ID, hash); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `delete from sessions where user_id = $1 and id <> $2`, s.User.ID, s.ID); err != nil {
			return err
		}
		return letter.WriteUser(ctx, tx, letter.Password, s.User.ID, nil)
	})
	if err != nil {
		return fmt.Errorf("changing the password of user %d: %w", s.User.ID, err)
	}
	return nil
}
