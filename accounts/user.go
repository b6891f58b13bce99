package accounts

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

const (
	maxEmail = 254 // octets, RFC 5321
	maxName  = 200 // code points
)

// User is a person who logs in and owns API tokens.
type User struct {
	ID            int64
	Email         string // trimmed and in lower case
	Name          string
	Administrator bool
	CreatedAt     time.Time
	Language      string // of mails to the user: fr, en or rn
}

// NewUser is the input of [Accounts.CreateUser].
type NewUser struct {
	Email, Name, Password string
	Administrator         bool
	Language              string // fr, en or rn; French when not given
}

const userColumns = `id, email, name, administrator, created_at, language`

// CreateUser stores a user. The errors are [ErrInvalid], [ErrExists] for an email that is taken, or those of Postgres.
func (a *Accounts) CreateUser(ctx context.Context, n NewUser) (User, error) {
	email, err := normalEmail(n.Email)
	if err != nil {
		return User{}, err
	}
	name, err := cleanName("user name", n.Name)
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

// decoyUser is the hash to compare with when there is no such user, so that the response time does not show it.
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
		Scan(&u.ID, &u.Email, &u.Name, &u.Administrator, &u.CreatedAt, &u.Language, &stored)
	hash, known := decoyUser, err == nil
	switch {
	case known:
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

// foldEmail is how an email is stored and looked for: "", which nobody has, for what PostgreSQL does not take for text.
func foldEmail(email string) string {
	if !utf8.ValidString(email) || strings.IndexByte(email, 0) >= 0 {
		return ""
	}
	return strings.ToLower(strings.TrimSpace(email))
}

func normalEmail(email string) (string, error) {
	email = foldEmail(email)
	parsed, err := mail.ParseAddress(email)
	if err != nil || parsed.Address != email || len(email) > maxEmail {
		return "", &callerError{ErrInvalid, fmt.Sprintf("%q is not an email address", email)}
	}
	return email, nil
}

// cleanName trims a displayed name; [ErrInvalid] when it cannot be one.
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
