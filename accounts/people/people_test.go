package people

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/accounts/companies"
)

// noRecord records nothing about a joining user.
func noRecord(pgx.Tx, User) error { return nil }

func (a *world) mustInvite(t *testing.T, company int64, email string, role accounts.Role) string {
	t.Helper()
	token, err := a.people.Invite(t.Context(), NewInvitation{Company: company, Email: email, Name: "Jean", Role: role,
		Language: "en"})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// mustPerson is a user who has joined a company.
func (a *world) mustPerson(t *testing.T, company int64, email string, role accounts.Role) User {
	t.Helper()
	u, err := a.people.Join(t.Context(), a.mustInvite(t, company, email, role), a.mustUser(t, email))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestInvitation(t *testing.T) {
	a := newWorld(t)
	owner := a.mustUser(t, "owner@example.com")
	company := a.Company(t, owner.Email)
	refused := func(want error, n NewInvitation) {
		t.Helper()
		n.Company = company.ID
		if _, err := a.people.Invite(t.Context(), n); !errors.Is(err, want) {
			t.Errorf("%+v: %v, want %v", n, err, want)
		}
	}
	refused(accounts.ErrInvalid, NewInvitation{Email: "jean", Name: "Jean", Role: accounts.RoleReader})
	refused(accounts.ErrInvalid, NewInvitation{Email: "jean@example.com", Name: "", Role: accounts.RoleReader})
	refused(accounts.ErrInvalid, NewInvitation{Email: "jean@example.com", Name: "Jean", Role: "admin"})
	refused(accounts.ErrExists, NewInvitation{Email: "Owner@example.com", Name: "A", Role: accounts.RoleReader})

	older := a.mustInvite(t, company.ID, "jean@example.com", accounts.RoleReader)
	token := a.mustInvite(t, company.ID, "jean@example.com", accounts.RoleDeveloper)
	if open, err := a.people.InvitationsOf(t.Context(), company.ID); err != nil || len(open) != 1 ||
		open[0].Role != accounts.RoleDeveloper {
		t.Errorf("%+v, %v", open, err)
	}
	if _, err := a.signIn.InvitationLink(t.Context(), older); !errors.Is(err, accounts.ErrNotFound) {
		t.Errorf("the replaced one: %v", err)
	}
	if _, err := a.signIn.FinishSignUp(t.Context(), token, testPassword); !errors.Is(err, accounts.ErrNotFound) {
		t.Errorf("for a sign-up: %v", err)
	}
	if l, err := a.signIn.InvitationLink(t.Context(), token); err != nil ||
		l != (Link{"jean@example.com", "Jean", "en", company.ID, accounts.RoleDeveloper}) {
		t.Errorf("%+v, %v", l, err)
	}
	failed := errors.New("not recorded")
	if _, err := a.signIn.FinishInvitation(t.Context(), token, testPassword,
		func(pgx.Tx, User) error { return failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
	// Several requests use it at once: one user is created.
	var made atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			switch u, err := a.signIn.FinishInvitation(t.Context(), token, testPassword, noRecord); {
			case err == nil && u.Company == company.ID && u.Role == accounts.RoleDeveloper:
				made.Add(1)
			case !errors.Is(err, accounts.ErrNotFound):
				t.Error(u, err)
			}
		})
	}
	all.Wait()
	people, err := a.people.PeopleOf(t.Context(), company.ID)
	if err != nil || made.Load() != 1 || len(people) != 2 || people[0].Role != accounts.RoleOwner ||
		people[1].Role != accounts.RoleDeveloper {
		t.Errorf("%d made; %+v, %v", made.Load(), people, err)
	}

	withdrawn := a.mustInvite(t, company.ID, "pia@example.com", accounts.RoleReader)
	open, err := a.people.InvitationsOf(t.Context(), company.ID)
	if err != nil || len(open) != 1 {
		t.Fatal(open, err)
	}
	if _, err := a.people.Withdraw(t.Context(), company.ID+1, open[0].ID); !errors.Is(err, accounts.ErrNotFound) {
		t.Errorf("of another company: %v", err)
	}
	if was, err := a.people.Withdraw(t.Context(), company.ID, open[0].ID); err != nil || was.Email != "pia@example.com" {
		t.Errorf("%+v, %v", was, err)
	}
	expired := a.mustInvite(t, company.ID, "eric@example.com", accounts.RoleReader)
	a.Exec(t, `update mail_links set expires_at = now()`)
	for _, gone := range []string{token, withdrawn, expired} {
		if _, err := a.signIn.InvitationLink(t.Context(), gone); !errors.Is(err, accounts.ErrNotFound) {
			t.Errorf("used, withdrawn or expired: %v", err)
		}
	}
}

// A user with an account joins with it, unless it belongs to a company; the user's earlier keys are revoked.
func TestJoin(t *testing.T) {
	a := newWorld(t)
	owner, other := a.mustUser(t, "owner@example.com"), a.mustUser(t, "other@example.com")
	c := a.Company(t, owner.Email)
	a.Company(t, other.Email)
	u := a.mustUser(t, "jean@example.com")
	key, text := a.mustToken(t, u.Email)
	token := a.mustInvite(t, c.ID, u.Email, accounts.RoleSender)
	if _, err := a.signIn.FinishInvitation(t.Context(), token, testPassword, noRecord); !errors.Is(
		err, accounts.ErrExists) {
		t.Errorf("as a new account: %v", err)
	}
	if _, err := a.people.Join(t.Context(), token, other); !errors.Is(err, accounts.ErrNotFound) {
		t.Errorf("as another user: %v", err)
	}
	joined, err := a.people.Join(t.Context(), token, u)
	if err != nil || joined.Company != c.ID || joined.Role != accounts.RoleSender {
		t.Errorf("%+v, %v", joined, err)
	}
	if _, err := a.people.Join(t.Context(), token, u); !errors.Is(err, accounts.ErrNotFound) {
		t.Errorf("twice: %v", err)
	}
	if _, err := a.createCompany(t.Context(), companies.NewCompany{OwnerEmail: u.Email, Name: "Own"}); !errors.Is(
		err, accounts.ErrExists) {
		t.Errorf("a company of the own besides: %v", err)
	}
	if k, err := a.keys.TokenByID(t.Context(), key.ID); err != nil || k.RevokedAt == nil {
		t.Errorf("the earlier key %s: %+v, %v", text[:2], k, err)
	}
	if _, err := a.people.Join(t.Context(), a.mustInvite(t, c.ID, other.Email, accounts.RoleSender), other); !errors.Is(
		err, accounts.ErrExists) {
		t.Errorf("a user with a company: %v", err)
	}
	_, session := a.mustOpen(t, joined)
	if session.Company.ID != c.ID || session.Company.OwnerID != owner.ID ||
		!session.May(accounts.MaySend) || session.May(accounts.MayManage) {
		t.Errorf("%+v", session)
	}
}

func TestPeopleAreLimited(t *testing.T) {
	a := newWorld(t)
	company := a.Company(t, a.mustUser(t, "owner@example.com").Email)
	var invited, refused atomic.Int64
	var all sync.WaitGroup
	for i := range MaxPeople + 6 {
		all.Go(func() {
			_, err := a.people.Invite(t.Context(), NewInvitation{Company: company.ID, Email: fmt.Sprintf("u%d@example.com", i),
				Name: "U", Role: accounts.RoleReader})
			switch {
			case err == nil:
				invited.Add(1)
			case errors.Is(err, accounts.ErrTooMany):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if invited.Load() != MaxPeople-1 || refused.Load() != 7 {
		t.Errorf("%d invited, %d refused", invited.Load(), refused.Load())
	}
}

// A new role revokes keys that it may not have; a removal also ends the sessions.
func TestSetRole(t *testing.T) {
	a := newWorld(t)
	owner := a.mustUser(t, "owner@example.com")
	company := a.Company(t, owner.Email)
	elsewhere := a.Company(t, a.mustUser(t, "other@example.com").Email)
	for _, c := range []struct {
		from, to             accounts.Role
		keepsKey, keepsLogin bool
	}{
		{accounts.RoleDeveloper, accounts.RoleOwner, true, true},
		{accounts.RoleOwner, accounts.RoleDeveloper, true, true},
		{accounts.RoleDeveloper, accounts.RoleReader, false, true},
		{accounts.RoleOwner, accounts.RoleFinance, false, true},
		{accounts.RoleReader, accounts.RoleSender, false, true},
		{accounts.RoleDeveloper, "", false, false},
		{accounts.RoleReader, "", false, false},
	} {
		u := a.mustPerson(t, company.ID, strings.ToLower(fmt.Sprintf("%s-%s@example.com", c.from, c.to)), c.from)
		key, _ := a.mustToken(t, u.Email)
		session, _ := a.mustOpen(t, u)
		before, err := a.people.SetRole(t.Context(), company.ID, u.ID, c.to)
		if err != nil || before.Role != c.from {
			t.Fatalf("%+v: %+v, %v", c, before, err)
		}
		if k, err := a.keys.TokenByID(t.Context(), key.ID); err != nil || (k.RevokedAt == nil) != c.keepsKey {
			t.Errorf("%+v: key %+v, %v", c, k, err)
		}
		if c.keepsLogin {
			if s, err := a.sessions.SessionByToken(t.Context(), session, idle); err != nil || s.User.Role != c.to {
				t.Errorf("%+v: session %+v, %v", c, s, err)
			}
			if _, _, err := a.keys.CreateOwnToken(t.Context(), u.ID, "x", accounts.TokenLimits{}); (err == nil) != c.to.May(
				accounts.MayDevelop) {
				t.Errorf("%+v: a new key: %v", c, err)
			}
		} else {
			a.ended(t, session)
			if u, err := a.people.UserByID(t.Context(), u.ID); err != nil || u.Company != 0 || u.Role != "" {
				t.Errorf("%+v: %+v, %v", c, u, err)
			}
		}
	}
	for _, wrong := range []struct {
		company, user int64
		role          accounts.Role
		want          error
	}{
		{company.ID, owner.ID, "admin", accounts.ErrInvalid}, {company.ID, 9999, accounts.RoleReader, accounts.ErrNotFound},
		{elsewhere.ID, owner.ID, accounts.RoleReader, accounts.ErrNotFound},
	} {
		if _, err := a.people.SetRole(t.Context(), wrong.company, wrong.user, wrong.role); !errors.Is(err, wrong.want) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}

// A company always has an owner who can sign in, and mails about it go to an owner.
func TestLastOwner(t *testing.T) {
	a := newWorld(t)
	first := a.mustUser(t, "first@example.com")
	company := a.Company(t, first.Email)
	a.mustPerson(t, company.ID, "reader@example.com", accounts.RoleReader)
	last := func(id int64) {
		t.Helper()
		for _, role := range []accounts.Role{"", accounts.RoleDeveloper} {
			if _, err := a.people.SetRole(t.Context(), company.ID, id, role); !errors.Is(err, ErrLastOwner) {
				t.Errorf("the last owner becomes %q: %v", role, err)
			}
		}
	}
	last(first.ID)
	second := a.mustPerson(t, company.ID, "second@example.com", accounts.RoleOwner)
	a.Exec(t, `update users set disabled_at = now() where id = $1`, second.ID)
	last(first.ID) // the other one cannot sign in
	a.Exec(t, `update users set disabled_at = null`)
	if _, err := a.people.SetRole(t.Context(), company.ID, first.ID, accounts.RoleSender); err != nil {
		t.Fatal(err)
	}
	if c, err := a.companies.CompanyByID(t.Context(), company.ID); err != nil || c.OwnerID != second.ID {
		t.Errorf("mails go to %d, %v", c.OwnerID, err)
	}
	last(second.ID)

	// Two owners who remove each other at once.
	if _, err := a.people.SetRole(t.Context(), company.ID, first.ID, accounts.RoleOwner); err != nil {
		t.Fatal(err)
	}
	var removed atomic.Int64
	var both sync.WaitGroup
	for _, id := range []int64{first.ID, second.ID} {
		both.Go(func() {
			switch _, err := a.people.SetRole(t.Context(), company.ID, id, ""); {
			case err == nil:
				removed.Add(1)
			case !errors.Is(err, ErrLastOwner):
				t.Error(err)
			}
		})
	}
	both.Wait()
	people, err := a.people.PeopleOf(t.Context(), company.ID)
	c, cErr := a.companies.CompanyByID(t.Context(), company.ID)
	if removed.Load() != 1 || err != nil || cErr != nil || len(people) != 2 || people[0].Role != accounts.RoleOwner &&
		people[1].Role != accounts.RoleOwner ||
		c.OwnerID != people[0].ID && c.OwnerID != people[1].ID {
		t.Errorf("%d removed; %+v, %v; %+v, %v", removed.Load(), people, err, c, cErr)
	}
}
