package people

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/internal/postgres"
)

const (
	// MaxPeople is how many people and open invitations a company may have.
	MaxPeople = 50
	// InvitationLife is how long an invitation works.
	InvitationLife = 7 * 24 * time.Hour
)

// ErrLastOwner means that a change would leave a company without an owner who can sign in.
var ErrLastOwner = accounts.Errorf(nil, "this is the company's last owner who can sign in")

// Invitation is an open invitation to a company.
type Invitation struct {
	ID        int64
	Email     string
	Name      string
	Role      accounts.Role
	ExpiresAt time.Time
}

// NewInvitation is the input of [Store.Invite].
type NewInvitation struct {
	Company     int64
	Email, Name string
	Role        accounts.Role
	Language    string // of the mail, and of a new account
}

// PeopleOf lists a company's people, in the order of their accounts.
func (a *Store) PeopleOf(ctx context.Context, company int64) ([]User, error) {
	return postgres.All(ctx, a.pool, "listing people", pgx.RowToStructByPos[User],
		`select `+userColumns+` from users where company_id = $1 order by id`, company)
}

// lockPeople locks the people of a company, and returns them.
func lockPeople(ctx context.Context, tx pgx.Tx, company int64) ([]User, error) {
	return postgres.All(ctx, tx, "locking people", pgx.RowToStructByPos[User],
		`select `+userColumns+` from users where company_id = $1 order by id for no key update`, company)
}

// InvitationsOf lists the open invitations of a company.
func (a *Store) InvitationsOf(ctx context.Context, company int64) ([]Invitation, error) {
	return postgres.All(ctx, a.pool, "listing invitations", pgx.RowToStructByPos[Invitation],
		`select id, email, name, role, expires_at from mail_links where company_id = $1 and expires_at > now() order by id`,
		company)
}

// Invite creates an invitation, which replaces the company's earlier one to the address. Send its token by mail only.
// The errors are [accounts.ErrInvalid], [accounts.ErrExists] for a person of the company, [accounts.ErrTooMany]. The
// result does not show whether the address has an account.
func (a *Store) Invite(ctx context.Context, n NewInvitation) (token string, err error) {
	email, name, err := cleanPerson(n.Email, n.Name)
	if err != nil {
		return "", err
	}
	if !slices.Contains(accounts.Roles, n.Role) {
		return "", accounts.Errorf(accounts.ErrInvalid, "there is no role %q", n.Role)
	}
	token, hash := newLinkToken()
	err = pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `delete from mail_links where company_id = $1 and (email = $2 or expires_at < now())`,
			n.Company, email); err != nil {
			return fmt.Errorf("replacing an invitation: %w", err)
		}
		people, err := lockPeople(ctx, tx, n.Company) // so that MaxPeople holds
		if err != nil {
			return err
		}
		if slices.ContainsFunc(people, func(u User) bool { return u.Email == email }) {
			return accounts.Errorf(accounts.ErrExists, "%s belongs to company %d already", email, n.Company)
		}
		open, err := a.In(tx).InvitationsOf(ctx, n.Company)
		if err != nil {
			return err
		}
		if len(people)+len(open) >= MaxPeople {
			return accounts.Errorf(accounts.ErrTooMany, "company %d has %d people and invitations", n.Company, MaxPeople)
		}
		_, err = accounts.Exec(ctx, tx, "storing an invitation", `
			insert into mail_links (purpose, token_hash, email, name, language, expires_at, company_id, role)
			values ($1, $2, $3, $4, $5, now() + $6::interval, $7, $8)`,
			linkInvitation, hash, email, name, knownLanguage(n.Language), InvitationLife, n.Company, n.Role)
		return err
	})
	return token, err
}

// Withdraw ends an invitation of the company, and returns it; [accounts.ErrNotFound] when there is none.
func (a *Store) Withdraw(ctx context.Context, company, id int64) (Invitation, error) {
	return accounts.One(ctx, a.pool, "withdrawing an invitation", fmt.Sprintf("there is no invitation with id %d", id),
		pgx.RowToStructByPos[Invitation],
		`delete from mail_links where id = $2 and company_id = $1 returning id, email, name, role, expires_at`, company, id)
}

// InvitationLink returns an invitation, as [SignIn.SignUpLink].
func (a *SignIn) InvitationLink(ctx context.Context, token string) (Link, error) {
	return a.link(ctx, linkInvitation, token)
}

// FinishInvitation is [SignIn.FinishSignUp] for an invitation to an address without an account. record runs in the
// same transaction.
func (a *SignIn) FinishInvitation(ctx context.Context, token, password string, record func(pgx.Tx, User) error) (
	User, error) {
	return a.finish(ctx, linkInvitation, token, password, record)
}

// Join uses an invitation to the address of a signed-in user. It revokes the user's earlier API keys, which belong to
// no company. [accounts.ErrExists] when the user belongs to a company.
func (a *Store) Join(ctx context.Context, token string, u User) (User, error) {
	err := pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		l, err := takeLink(ctx, tx, linkInvitation, token)
		if err == nil && l.Email != u.Email {
			err = linkError(pgx.ErrNoRows)
		}
		if err != nil {
			return err
		}
		u.Company, u.Role = l.Company, l.Role
		n, err := accounts.Exec(ctx, tx, fmt.Sprintf("adding user %d to a company", u.ID),
			`update users set company_id = $2, role = $3 where id = $1 and company_id is null`, u.ID, l.Company, l.Role)
		if err == nil && n == 0 {
			err = accounts.Errorf(accounts.ErrExists, "user %d belongs to a company already", u.ID)
		}
		if err != nil {
			return err
		}
		return revokeTokensOf(ctx, tx, u.ID)
	})
	return u, err
}

// SetRole gives a person of the company another role, or removes the person when the role is empty, and returns the
// person before. It takes effect at once: sessions of a removed person end, and API keys are revoked unless the new
// role may have them. [ErrLastOwner] when the company would have no owner who can sign in.
func (a *Store) SetRole(ctx context.Context, company, id int64, role accounts.Role) (before User, err error) {
	if role != "" && !slices.Contains(accounts.Roles, role) {
		return before, accounts.Errorf(accounts.ErrInvalid, "there is no role %q", role)
	}
	err = pgx.BeginFunc(ctx, a.pool, func(tx pgx.Tx) error {
		// Lock all people: two owners who remove each other at once must not both succeed.
		people, err := lockPeople(ctx, tx, company)
		if err != nil {
			return err
		}
		var heir int64 // another owner
		for _, u := range people {
			switch {
			case u.ID == id:
				before = u
			case u.Role == accounts.RoleOwner && !u.Disabled && heir == 0:
				heir = u.ID
			}
		}
		switch {
		case before.ID == 0:
			return accounts.Errorf(accounts.ErrNotFound, "company %d has no user %d", company, id)
		case before.Role == accounts.RoleOwner && role != accounts.RoleOwner && heir == 0:
			return ErrLastOwner
		}
		if _, err := accounts.Exec(ctx, tx, fmt.Sprintf("changing the role of user %d", id),
			`update users set role = nullif($2, ''), company_id = case when $2 <> '' then company_id end where id = $1`, id,
			string(role)); err != nil {
			return err
		}
		if role != accounts.RoleOwner {
			if _, err := accounts.Exec(ctx, tx, fmt.Sprintf("passing on the mails of company %d", company),
				`update companies set owner_id = $3 where id = $1 and owner_id = $2`, company, id, heir); err != nil {
				return err
			}
		}
		if role == "" {
			if err := (&Sessions{tx}).EndSessions(ctx, id, 0); err != nil {
				return err
			}
		}
		if !role.May(accounts.MayDevelop) {
			return revokeTokensOf(ctx, tx, id)
		}
		return nil
	})
	return before, err
}

// revokeTokensOf revokes a user's tokens.
func revokeTokensOf(ctx context.Context, tx pgx.Tx, userID int64) error {
	_, err := accounts.Exec(ctx, tx, fmt.Sprintf("revoking the tokens of user %d", userID), `
		update api_tokens t set revoked_at = now()
		from (select id from api_tokens where user_id = $1 and revoked_at is null order by id for update) own
		where t.id = own.id`, userID)
	return err
}
