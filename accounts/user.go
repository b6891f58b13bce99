package accounts

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/mail"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

const (
	maxEmail = 254 // bytes, RFC 5321
	maxName  = 200 // code points
)

// User is a person who signs in and owns API tokens.
type User struct {
	ID            int64
	Email         string // trimmed and in lower case
	Name          string
	Administrator bool
	CreatedAt     time.Time
	Language      string // of mails to the user: fr, en or rn
	Disabled      bool   // cannot sign in, and the user's tokens are refused
	Company       int64  // 0: none
	Role          Role   // in the company
}

// NewUser is the input of [Accounts.CreateUser].
type NewUser struct {
	Email, Name, Password string
	Administrator         bool
	Language              string // fr, en or rn; French when not given
}

const userColumns = `id, email, name, administrator, created_at, language, disabled_at is not null, coalesce(company_id, 0), coalesce(role, '')`

// CreateUser stores a user. The errors are [ErrInvalid], [ErrExists] for an email that is taken, or those of Postgres.
func (a *Accounts) CreateUser(ctx context.Context, n NewUser) (User, error) {
	email, name, err := cleanPerson(n.Email, n.Name)
	if err != nil {
		return User{}, err
	}
	hash, err := a.hashPassword(ctx, n.Password)
	if err != nil {
		return User{}, err
	}
	u := User{Email: email, Name: name, Administrator: n.Administrator, Language: knownLanguage(n.Language)}
	err = a.pool.QueryRow(ctx,
		`insert into users (email, name, password_hash, administrator, language) values ($1, $2, $3, $4, $5) returning id, created_at`,
		email, name, hash, n.Administrator, u.Language).Scan(&u.ID, &u.CreatedAt)
	if isUnique(err, "users_email_key") {
		return User{}, &callerError{ErrExists, fmt.Sprintf("a user with the email %s exists already", email)}
	}
	if err != nil {
		return User{}, fmt.Errorf("storing a user: %w", err)
	}
	return u, nil
}

// decoyUser is compared when there is no such user: the response time must not show it.
var decoyUser = phc{
	memory: argonMemory, time: argonTime, threads: argonThreads,
	salt: make([]byte, argonSalt), key: make([]byte, argonKey),
}

// Login returns the user with that email and password; [ErrUnauthenticated] when there is none.
func (a *Accounts) Login(ctx context.Context, email, password string) (User, error) {
	if len(password) > maxPassword {
		return User{}, ErrUnauthenticated
	}
	var (
		u      User
		stored string
	)
	err := a.pool.QueryRow(ctx, `select `+userColumns+`, password_hash from users where email = $1`, foldEmail(email)).
		Scan(&u.ID, &u.Email, &u.Name, &u.Administrator, &u.CreatedAt, &u.Language, &u.Disabled, &u.Company, &u.Role, &stored)
	hash, known := decoyUser, err == nil && !u.Disabled
	switch {
	case err == nil:
		if hash, err = parsePHC(stored); err != nil {
			return User{}, fmt.Errorf("checking the password of user %d: %w", u.ID, err)
		}
	case !errors.Is(err, pgx.ErrNoRows):
		return User{}, fmt.Errorf("looking a user up: %w", err)
	}
	if err := a.takeHashingSlot(ctx); err != nil {
		return User{}, err
	}
	defer a.releaseHashingSlot()
	if !hash.matches(password) || !known {
		return User{}, ErrUnauthenticated
	}
	return u, nil
}

// UserChange is the input of [Accounts.SetUser].
type UserChange struct {
	Disabled *bool // nil: unchanged
	Demote   bool  // no administrator any more
	Reset    bool  // the password and the second factor are void; a letter invites the user to choose a password
}

// ErrLastAdministrator means that a change would leave no administrator who can sign in.
var ErrLastAdministrator = errors.New("this is the last administrator who can sign in")

// SetUser changes a user and ends their sessions and mailed links.
func (a *Accounts) SetUser(ctx context.Context, id int64, change UserChange) (before, after User, err error) {
	void := "" // the hash of a random password
	if change.Reset {
		if void, err = a.hashPassword(ctx, rand.Text()); err != nil {
			return before, after, err
		}
	}
	err = pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `delete from mail_links where email = (select email from users where id = $1)`, id); err != nil {
			return err
		}
		// Lock all administrators: two who withdraw each other at once must not both succeed.
		locked, err := postgres.All(ctx, tx, "locking users", pgx.RowToStructByPos[User],
			`select `+userColumns+` from users where id = $1 or administrator order by id for update`, id)
		if err != nil {
			return err
		}
		others := 0
		for _, u := range locked {
			if u.ID == id {
				before = u
			} else if !u.Disabled {
				others++
			}
		}
		switch {
		case before.ID == 0:
			return &callerError{ErrNotFound, fmt.Sprintf("there is no user with id %d", id)}
		case before.Administrator && others == 0 && (change.Demote || change.Disabled != nil && *change.Disabled):
			return &callerError{ErrLastAdministrator, ErrLastAdministrator.Error()}
		}
		after, err = readOne(ctx, tx, fmt.Sprintf("changing user %d", id), "", pgx.RowToStructByPos[User], `
			update users set administrator = administrator and not $2, password_hash = coalesce(nullif($3, ''), password_hash),
				disabled_at = case when coalesce($4, disabled_at is not null) then coalesce(disabled_at, now()) end
			where id = $1 returning `+userColumns, id, change.Demote, void, change.Disabled)
		if err == nil && change.Reset {
			if _, err = tx.Exec(ctx, voidSecondFactor, id); err == nil {
				err = writeUserLetter(ctx, tx, LetterReset, id, nil)
			}
		}
		if err == nil {
			err = a.In(tx).EndSessions(ctx, id, 0)
		}
		return err
	})
	return before, after, err
}

// LockUsers returns users by id. Until the transaction ends nobody changes them.
func LockUsers(ctx context.Context, tx pgx.Tx, ids []int64) (map[int64]User, error) {
	list, err := postgres.All(ctx, tx, "locking users", pgx.RowToStructByPos[User], `select `+userColumns+` from users where id = any($1) order by id for share`, ids)
	users := make(map[int64]User, len(list))
	for _, u := range list {
		users[u.ID] = u
	}
	return users, err
}

// Administrators lists the administrators, disabled ones too.
func (a *Accounts) Administrators(ctx context.Context) ([]User, error) {
	return postgres.All(ctx, a.pool, "listing administrators", pgx.RowToStructByPos[User],
		`select `+userColumns+` from users where administrator order by email`)
}

// UserByEmail returns the user with that email, ignoring case.
func (a *Accounts) UserByEmail(ctx context.Context, email string) (User, error) {
	email = foldEmail(email)
	return a.user(ctx, noUser(email), `email = $1`, email)
}

func noUser(email string) string { return fmt.Sprintf("there is no user with the email %s", email) }

// UserByID returns the user with that id.
func (a *Accounts) UserByID(ctx context.Context, id int64) (User, error) {
	return a.user(ctx, fmt.Sprintf("there is no user with id %d", id), `id = $1`, id)
}

func (a *Accounts) user(ctx context.Context, missing, condition string, argument any) (User, error) {
	return readOne(ctx, a.pool, "reading a user", missing, pgx.RowToStructByPos[User], `select `+userColumns+` from users where `+condition, argument)
}

// foldEmail returns an email's stored form; "", which no user has, if PostgreSQL would refuse it as text.
func foldEmail(email string) string {
	if !utf8.ValidString(email) || strings.IndexByte(email, 0) >= 0 {
		return ""
	}
	return strings.ToLower(strings.TrimSpace(email))
}

// cleanPerson returns the stored forms of a person's e-mail address and name, or [ErrInvalid].
func cleanPerson(email, name string) (string, string, error) {
	email = foldEmail(email)
	parsed, err := mail.ParseAddress(email)
	if err != nil || parsed.Address != email || len(email) > maxEmail {
		return "", "", &callerError{ErrInvalid, fmt.Sprintf("%q is not an email address", email)}
	}
	name, err = cleanName("user name", name)
	return email, name, err
}

// cleanName trims a displayed name; [ErrInvalid] when it is empty, too long or unprintable.
func cleanName(what, name string) (string, error) {
	name = strings.TrimSpace(name)
	switch {
	case name == "":
		return "", &callerError{ErrInvalid, "the " + what + " is empty"}
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return "", &callerError{ErrInvalid, "the " + what + " has characters that are not text"}
	case utf8.RuneCountInString(name) > maxName:
		return "", &callerError{ErrInvalid, fmt.Sprintf("the %s is longer than %d characters", what, maxName)}
	}
	return name, nil
}
