package operations

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/accounts/people"
	"intumwa/accounts/testnumbers"
	"intumwa/internal/audit"
	"intumwa/sms"
)

// User is a user as acts record and commands print it.
type User struct {
	ID            int64  `json:"user_id"`
	Email         string `json:"email"`
	Administrator bool   `json:"administrator"`
	Disabled      bool   `json:"disabled"`
}

// CreateUser creates a user.
func (a Actor) CreateUser(ctx context.Context, n people.NewUser) (u people.User, err error) {
	if n, err = n.Hashed(ctx); err != nil {
		return u, err
	}
	err = a.do(ctx, reads, func(in within) (act, error) {
		u, err = in.people().CreateUser(ctx, n)
		return on("user.create", "user", u.ID, 0, nil,
			fields{"email": u.Email, "name": u.Name, "administrator": u.Administrator}), err
	})
	return u, err
}

// UserChanges are the changes of users by their acts, without the prefix user.
var UserChanges = map[string]people.UserChange{
	"disable": {Disabled: new(true)},
	"enable":  {Disabled: new(false)},
	"demote":  {Demote: true},
	"reset":   {Reset: true},
}

// SetUser makes one of [UserChanges], and ends the user's sessions.
func (a Actor) SetUser(ctx context.Context, id int64, change, reason string) (is User, err error) {
	err = a.do(ctx, reads, func(in within) (act, error) {
		before, after, err := in.people().SetUser(ctx, id, UserChanges[change])
		state := func(u people.User) User { return User{u.ID, u.Email, u.Administrator, u.Disabled} }
		is = state(after)
		done := on("user."+change, "user", id, before.Company, state(before), is)
		done.reason, done.hidden = reason, UserChanges[change].Reset // the password
		return done, err
	})
	return is, err
}

func recordedPerson(email string, role accounts.Role) any {
	return fields{"email": email, "role": role}
}

// SetRole gives a person of a company another role; "" removes the person.
func (a Actor) SetRole(ctx context.Context, company, id int64, role accounts.Role) error {
	return a.do(ctx, locks, func(in within) (act, error) {
		before, err := in.people().SetRole(ctx, company, id, role)
		done := on("user.role", "user", id, company, recordedPerson(before.Email, before.Role),
			recordedPerson(before.Email, role))
		if role == "" {
			done.name, done.after = "user.remove", fields{"email": before.Email, "role": nil}
		}
		return done, err
	})
}

// Invite creates an invitation, whose token goes into a mail only.
func (a Actor) Invite(ctx context.Context, n people.NewInvitation) (token string, err error) {
	err = a.do(ctx, locks, func(in within) (act, error) {
		token, err = in.people().Invite(ctx, n)
		return on("user.invite", "company", n.Company, n.Company, nil, recordedPerson(n.Email, n.Role)), err
	})
	return token, err
}

// Uninvite withdraws an invitation of a company.
func (a Actor) Uninvite(ctx context.Context, company, id int64) error {
	return a.do(ctx, reads, func(in within) (act, error) {
		was, err := in.people().Withdraw(ctx, company, id)
		return on("user.uninvite", "company", company, company, recordedPerson(was.Email, was.Role), nil), err
	})
}

func joined(u people.User) act {
	return on("user.join", "user", u.ID, u.Company, nil, recordedPerson(u.Email, u.Role))
}

// Join uses an invitation to a user's address.
func (a Actor) Join(ctx context.Context, token string, u people.User) error {
	return a.do(ctx, locks, func(in within) (act, error) {
		u, err := in.people().Join(ctx, token, u)
		return joined(u), err
	})
}

// FinishInvitation creates the invited user, who is the actor.
func (r Deps) FinishInvitation(ctx context.Context, token, password string) (people.User, error) {
	return r.SignIn.FinishInvitation(ctx, token, password, func(tx pgx.Tx, u people.User) error {
		return By(audit.User(u.ID), nil, r).record(ctx, tx, joined(u))
	})
}

// SetTestNumber sets a user's test number without a code.
func (a Actor) SetTestNumber(ctx context.Context, email string, number sms.Number, verified bool) (
	is testnumbers.TestNumber, err error) {
	err = a.do(ctx, reads, func(in within) (act, error) {
		u, err := in.people().UserByEmail(ctx, email)
		if err != nil {
			return act{}, err
		}
		state := func(n testnumbers.TestNumber) any {
			if n.PhoneNumber == "" {
				return nil
			}
			return fields{"phone_number": n.PhoneNumber.Masked(), "verified": n.Verified}
		}
		was, err := in.testNumbers().TestNumberOf(ctx, u.ID)
		if err != nil && !errors.Is(err, accounts.ErrNotFound) {
			return act{}, err
		}
		is, err = in.testNumbers().SetTestNumber(ctx, email, number, verified)
		done := on("test_number.set", "user", u.ID, u.Company, state(was), state(is))
		done.hidden = was.PhoneNumber != is.PhoneNumber // they are masked
		return done, err
	})
	return is, err
}
