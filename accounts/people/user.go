package people

import (
	"context"
	"fmt"
	"net/mail"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/accounts/letter"
	"intumwa/internal/postgres"
)

const maxEmail = 254 // bytes, RFC 5321

// User is a person who signs in and owns API tokens.
type User struct {
	ID            int64
	Email         string // trimmed and in lower case
	Name          string
	Administrator bool
	CreatedAt     time.Time
	Language      string        // of mails to the user: fr, en or rn
	Disabled      bool          // cannot sign in, and the user's tokens are refused
	Company       int64         // 0: none
	Role          accounts.Role // in the company
}

// NewUser is the input of [Store.CreateUser].
type NewUser struct {
	Email, Name, Password string
	Administrator         bool
	Language              string // fr, en or rn; French when not given

	hash string // of the password; "": not yet hashed
}

const userColumns = `id, email, name, administrator, created_at, language, disabled_at is not null,
	coalesce(company_id, 0), coalesce(role, '')`

// Hashed returns n with its password hashed. Call it before a transaction: hashing may wait for others' sign-ins. The
// error is [accounts.ErrInvalid] or that of ctx.
func (n NewUser) Hashed(ctx context.Context) (_ NewUser, err error) {
	if n.hash == "" {
		n.hash, err = hashPassword(ctx, n.Password)
	}
	return n, err
}

// CreateUser stores a user. The errors are [accounts.ErrInvalid], [accounts.ErrExists] for an email that is taken, or
// those of Postgres.
func (a *Store) CreateUser(ctx context.Context, n NewUser) (User, error) {
	email, name, err := cleanPerson(n.Email, n.Name)
	if err != nil {
		return User{}, err
	}
	if n, err = n.Hashed(ctx); err != nil {
		return User{}, err
	}
	u := User{Email: email, Name: name, Administrator: n.Administrator, Language: knownLanguage(n.Language)}
	err = a.pool.QueryRow(ctx,
		`insert into users (email, name, password_hash, administrator, language) values ($1, $2, $3, $4, $5)
			returning id, created_at`,
		email, name, n.hash, n.Administrator, u.Language).Scan(&u.ID, &u.CreatedAt)
	if accounts.IsUnique(err, "users_email_key") {
		return User{}, accounts.Errorf(accounts.ErrExists, "a user with the email %s exists already", email)
	}
	if err != nil {
		return User{}, fmt.Errorf("storing a user: %w", err)
	}
	return u, nil
}

// UserChange is the input of [Store.SetUser].
type UserChange struct {
	Disabled *bool // nil: unchanged
	Demote   bool  // no administrator any more
	Reset    bool  // the password and the second factor are void; a letter invites the user to choose a password
}

// ErrLastAdministrator means that a change would leave no administrator who can sign in.
var ErrLastAdministrator = accounts.Errorf(nil, "this is the last administrator who can sign in")

// SetUser changes a user and ends their sessions and mailed links.
func (a *Store) SetUser(ctx context.Context, id int64, change UserChange) (before, after User, err error) {
	void := ""
	if change.Reset {
		void = nobodysPassword()
	}
	err = pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `delete from mail_links where email = (select email from users where id = $1)`,
			id); err != nil {
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
			return accounts.Errorf(accounts.ErrNotFound, "there is no user with id %d", id)
		case before.Administrator && others == 0 && (change.Demote || change.Disabled != nil && *change.Disabled):
			return ErrLastAdministrator
		}
		after, err = accounts.One(ctx, tx, fmt.Sprintf("changing user %d", id), "", pgx.RowToStructByPos[User], `
			update users set administrator = administrator and not $2, password_hash = coalesce(nullif($3, ''), password_hash),
				disabled_at = case when coalesce($4, disabled_at is not null) then coalesce(disabled_at, now()) end
			where id = $1 returning `+userColumns, id, change.Demote, void, change.Disabled)
		if err == nil && change.Reset {
			_, err = tx.Exec(ctx, voidSecondFactor, id)
		}
		if err == nil {
			err = (&Sessions{tx}).EndSessions(ctx, id, 0)
		}
		if err == nil && change.Reset {
			err = letter.WriteUser(ctx, tx, letter.Reset, id, nil)
		}
		return err
	})
	return before, after, err
}

// LockUsers returns users by id. Until the transaction ends nobody changes them.
func LockUsers(ctx context.Context, tx pgx.Tx, ids []int64) (map[int64]User, error) {
	list, err := postgres.All(ctx, tx, "locking users", pgx.RowToStructByPos[User], `select `+userColumns+
		` from users where id = any($1) order by id for share`, ids)
	users := make(map[int64]User, len(list))
	for _, u := range list {
		users[u.ID] = u
	}
	return users, err
}

// Administrators lists the administrators, disabled ones too.
func (a *Store) Administrators(ctx context.Context) ([]User, error) {
	return postgres.All(ctx, a.pool, "listing administrators", pgx.RowToStructByPos[User],
		`select `+userColumns+` from users where administrator order by email`)
}

// UserByEmail returns the user with that email, ignoring case.
func (a *Store) UserByEmail(ctx context.Context, email string) (User, error) {
	email = accounts.FoldEmail(email)
	return a.user(ctx, accounts.NoUser(email), `email = $1`, email)
}

// UserByID returns the user with that id.
func (a *Store) UserByID(ctx context.Context, id int64) (User, error) {
	return a.user(ctx, fmt.Sprintf("there is no user with id %d", id), `id = $1`, id)
}

func (a *Store) user(ctx context.Context, missing, condition string, argument any) (User, error) {
	return accounts.One(ctx, a.pool, "reading a user", missing, pgx.RowToStructByPos[User], `select `+userColumns+
		` from users where `+condition, argument)
}

// cleanPerson returns the stored forms of a person's e-mail address and name, or [accounts.ErrInvalid].
func cleanPerson(email, name string) (string, string, error) {
	email = accounts.FoldEmail(email)
	parsed, err := mail.ParseAddress(email)
	if err != nil || parsed.Address != email || len(email) > maxEmail {
		return "", "", accounts.Errorf(accounts.ErrInvalid, "%q is not an email address", email)
	}
	name, err = accounts.CleanName("user name", name)
	return email, name, err
}

// SetLanguage sets the language of mails to a user.
func (a *Store) SetLanguage(ctx context.Context, userID int64, language string) error {
	_, err := accounts.Exec(ctx, a.pool, fmt.Sprintf("storing the language of user %d", userID),
		`update users set language = $2 where id = $1`, userID, knownLanguage(language))
	return err
}

func knownLanguage(language string) string {
	switch language {
	case "en", "rn":
		return language
	default:
		return "fr"
	}
}

// The lists below are for operators: rows of all users, with ids above after, in the order of the ids, at most limit.

// Users lists users.
func (a *Store) Users(ctx context.Context, after int64, limit int) ([]User, error) {
	return postgres.All(ctx, a.pool, "listing users", pgx.RowToStructByPos[User],
		`select `+userColumns+` from users where id > $1 order by id limit $2`, after, limit)
}

// FindUsers lists users whose e-mail contains text, ignoring case.
func (a *Store) FindUsers(ctx context.Context, text string, limit int) ([]User, error) {
	return postgres.All(ctx, a.pool, "looking for users", pgx.RowToStructByPos[User],
		`select `+userColumns+` from users where position($1 in email) > 0 order by id limit $2`, accounts.FoldEmail(text),
		limit)
}
