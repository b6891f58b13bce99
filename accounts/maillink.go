package accounts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// LinkLife is how long a mailed link works.
const LinkLife = time.Hour

// maxLinks is how many links to one address may be open at once; the oldest gives way.
const maxLinks = 5

const (
	linkSignUp   = "sign-up"
	linkPassword = "password"
)

// Link is what a mailed link is for. Whoever has it reads the mailbox that it names.
type Link struct{ Email, Name, Language string }

// BeginSignUp makes the link that lets an address become a user; its token goes out by mail and nowhere else. Nobody
// has an account or a password until the link is followed, so nobody can prepare an account in another's name.
// [ErrExists] when there is such a user, which is not to be told to whoever asked.
func (a *Accounts) BeginSignUp(ctx context.Context, n NewUser) (token string, err error) {
	email, err := normalEmail(n.Email)
	if err != nil {
		return "", err
	}
	name, err := cleanName("user name", n.Name)
	if err != nil {
		return "", err
	}
	token, made, err := a.makeLink(ctx, linkSignUp, Link{email, name, n.Language}, false)
	if err == nil && !made {
		err = &mistake{ErrExists, fmt.Sprintf("a user with the email %s exists already", email)}
	}
	return token, err
}

// BeginReset makes the link that lets a user choose another password. [ErrNotFound] when there is no such user, which
// is not to be told to whoever asked.
func (a *Accounts) BeginReset(ctx context.Context, email, language string) (token string, err error) {
	token, made, err := a.makeLink(ctx, linkPassword, Link{Email: foldEmail(email), Language: language}, true)
	if err == nil && !made {
		err = &mistake{ErrNotFound, "there is no user with that email"}
	}
	return token, err
}

// makeLink takes the same statements whether it makes one or not.
func (a *Accounts) makeLink(ctx context.Context, purpose string, l Link, forUser bool) (token string, made bool, err error) {
	token, hash := newLinkToken()
	err = pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `
			delete from mail_links where email = $1 and purpose = $2 and id not in (
				select id from mail_links where email = $1 and purpose = $2 and expires_at > now() order by id desc limit $3)`,
			l.Email, purpose, maxLinks-1); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			insert into mail_links (purpose, token_hash, email, name, language, expires_at)
			select $1, $2, $3, $4, $5, now() + $6::interval
			where exists (select from users where email = $3) = $7`,
			purpose, hash, l.Email, l.Name, knownLanguage(l.Language), LinkLife, forUser)
		made = tag.RowsAffected() == 1
		return err
	})
	if err != nil {
		return "", false, fmt.Errorf("making a link of purpose %s: %w", purpose, err)
	}
	return token, made, nil
}

// SignUpLink is what a sign-up's token stands for, without using it up; [ErrNotFound] when it does not work (any more).
func (a *Accounts) SignUpLink(ctx context.Context, token string) (Link, error) {
	return a.link(ctx, linkSignUp, token)
}

// ResetLink is the same of a password's.
func (a *Accounts) ResetLink(ctx context.Context, token string) (Link, error) {
	return a.link(ctx, linkPassword, token)
}

func (a *Accounts) link(ctx context.Context, purpose, token string) (l Link, err error) {
	err = a.pool.QueryRow(ctx,
		`select email, name, language from mail_links where token_hash = $1 and purpose = $2 and expires_at > now()`,
		hashToken(token), purpose).Scan(&l.Email, &l.Name, &l.Language)
	return l, linkError(err)
}

func takeLink(ctx context.Context, tx pgx.Tx, purpose, token string) (l Link, err error) {
	err = tx.QueryRow(ctx,
		`delete from mail_links where token_hash = $1 and purpose = $2 and expires_at > now() returning email, name, language`,
		hashToken(token), purpose).Scan(&l.Email, &l.Name, &l.Language)
	if err == nil { // the others to this address end with it
		_, err = tx.Exec(ctx, `delete from mail_links where email = $1 and purpose = $2`, l.Email, purpose)
	}
	return l, linkError(err)
}

func linkError(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return &mistake{ErrNotFound, "the link does not work any more"}
	}
	if err != nil {
		return fmt.Errorf("looking a link up: %w", err)
	}
	return nil
}

// FinishSignUp makes the user for whom the link was mailed. The errors are [ErrNotFound] for a link that does not
// work, [ErrInvalid] for the password, [ErrExists] when the user was made meanwhile.
func (a *Accounts) FinishSignUp(ctx context.Context, token, password string) (u User, err error) {
	hash, err := a.hashNewPassword(ctx, password)
	if err != nil {
		return User{}, err
	}
	err = pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		l, err := takeLink(ctx, tx, linkSignUp, token)
		if err != nil {
			return err
		}
		u = User{Email: l.Email, Name: l.Name, Language: l.Language}
		err = tx.QueryRow(ctx,
			`insert into users (email, name, password_hash, language) values ($1, $2, $3, $4) returning id, created_at`,
			u.Email, u.Name, hash, u.Language).Scan(&u.ID, &u.CreatedAt)
		if isUnique(err, "users_email_key") {
			return &mistake{ErrExists, fmt.Sprintf("a user with the email %s exists already", u.Email)}
		}
		if err != nil {
			return fmt.Errorf("storing a user: %w", err)
		}
		return nil
	})
	return u, err
}

// FinishReset sets the password of the user to whom the link was mailed and ends all sessions. A second factor stays.
func (a *Accounts) FinishReset(ctx context.Context, token, password string) (u User, err error) {
	hash, err := a.hashNewPassword(ctx, password)
	if err != nil {
		return User{}, err
	}
	err = pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		l, err := takeLink(ctx, tx, linkPassword, token)
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `update users set password_hash = $2 where email = $1 returning `+userColumns, l.Email, hash)
		if err == nil {
			u, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[User])
		}
		if err == nil {
			_, err = tx.Exec(ctx, `delete from sessions where user_id = $1`, u.ID)
		}
		if err != nil {
			return fmt.Errorf("storing a password: %w", err)
		}
		return nil
	})
	return u, err
}

// ChangePassword replaces the password of a user who knows the present one ([ErrUnauthenticated] otherwise), and ends
// all other sessions.
func (a *Accounts) ChangePassword(ctx context.Context, s Session, present, password string) error {
	if _, err := a.Login(ctx, s.User.Email, present); err != nil {
		return err
	}
	hash, err := a.hashNewPassword(ctx, password)
	if err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `update users set password_hash = $2 where id = $1`, s.User.ID, hash); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `delete from mail_links where email = $1 and purpose = $2`, s.User.Email, linkPassword); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `delete from sessions where user_id = $1 and id <> $2`, s.User.ID, s.ID)
		return err
	})
	if err != nil {
		return fmt.Errorf("changing the password of user %d: %w", s.User.ID, err)
	}
	return nil
}

// SetLanguage says in which language a user is written to.
func (a *Accounts) SetLanguage(ctx context.Context, userID int64, language string) error {
	if _, err := a.pool.Exec(ctx, `update users set language = $2 where id = $1`, userID, knownLanguage(language)); err != nil {
		return fmt.Errorf("storing the language of user %d: %w", userID, err)
	}
	return nil
}

func knownLanguage(language string) string {
	switch language {
	case "en", "rn":
		return language
	default:
		return "fr"
	}
}
