package keys

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts"
	"intumwa/accounts/companies"
	"intumwa/accounts/senders"
	"intumwa/internal/notices"
	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
)

// listening returns the stores of another process on the same database, which gets the notices.
func listening(t *testing.T, url string) *world {
	t.Helper()
	pool, err := postgres.Open(t.Context(), url, postgres.Options{MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	a := on(pool)
	a.holders.cache.age = time.Hour // only a notice ends an entry
	l := notices.New(pool, notices.Options{})
	begun := make(chan struct{})
	l.On(notices.Account, a.holders.ForgetUser)
	l.On(notices.Company, a.holders.ForgetCompany)
	once := sync.OnceFunc(func() { close(begun) })
	l.On(notices.Account, func(string) { once() })
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-begun:
	case <-time.After(10 * time.Second):
		t.Fatal("no listener")
	}
	return a
}

// soon waits for a condition. In another process's cache only a notice can cause it.
func soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// TestChangesTakeEffectElsewhere: a change by one process or by psql takes effect at once in another process, which has
// the token in its cache.
func TestChangesTakeEffectElsewhere(t *testing.T) {
	url := testenv.Database(t)
	pool, err := postgres.Open(t.Context(), url, postgres.Options{MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	here, there := on(pool), listening(t, url)
	here.User(t, "a@example.com")
	token, text := here.mustToken(t, "a@example.com")
	now := func() *accounts.Principal {
		p, err := there.holders.Authenticate(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if now().Company != nil {
		t.Fatal("a company from nowhere")
	}
	company := here.Company(t, "a@example.com")
	soon(t, "a new company", func() bool { return now().Company != nil })
	if _, err := here.companies.SetCompany(t.Context(), company.ID,
		companies.CompanyChange{Approved: new(true)}); err != nil {
		t.Fatal(err)
	}
	soon(t, "an approval", func() bool { return now().Company.Approved })
	sender := here.mustSender(t, company.ID, "ACME")
	soon(t, "a sender", func() bool { _, ok := now().Company.Senders["ACME"]; return ok })
	if _, err := here.senders.SetSender(t.Context(), sender.ID, true); err != nil {
		t.Fatal(err)
	}
	soon(t, "a sender's approval", func() bool { return now().Company.Senders["ACME"].Approved })
	if _, _, err := here.senders.SetRegistration(t.Context(), sender.ID, "leo",
		senders.RegistrationChange{State: senders.RegistrationApproved}); err != nil {
		t.Fatal(err)
	}
	soon(t, "a sender's registration", func() bool { return now().Company.Senders["ACME"].WorksAt("leo", true) })
	here.Exec(t, `update sender_carriers set state = 'refused'`) // by psql
	soon(t, "its end", func() bool { return !now().Company.Senders["ACME"].WorksAt("leo", false) })
	if _, err := here.testNumbers.SetTestNumber(t.Context(), "a@example.com", "+25761000001", true); err != nil {
		t.Fatal(err)
	}
	soon(t, "a test number", func() bool { return now().TestNumber != "" })
	here.Exec(t, `update companies set approved = false`) // by psql
	soon(t, "a withdrawn approval", func() bool { return !now().Company.Approved })
	developer := here.mustPerson(t, company.ID, "developer@example.com", accounts.RoleDeveloper)
	_, other := here.mustToken(t, developer.Email)
	if _, err := there.holders.Authenticate(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	removed := func(text string) func() bool {
		return func() bool {
			_, err := there.holders.Authenticate(t.Context(), text)
			return errors.Is(err, accounts.ErrUnauthenticated)
		}
	}
	err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := here.people.In(tx).SetRole(t.Context(), company.ID, developer.ID, "")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	soon(t, "a removal from the company", removed(other))
	// In a transaction: at its commit.
	err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		return here.keys.In(tx).RevokeToken(t.Context(), token.ID)
	})
	if err != nil {
		t.Fatal(err)
	}
	soon(t, "a revocation", removed(text))
}

// TestForgetting: one user's entries are dropped, one company's, or all.
func TestForgetting(t *testing.T) {
	a := newWorld(t)
	remembered := func() (n int) {
		a.holders.cache.mu.RLock()
		defer a.holders.cache.mu.RUnlock()
		return len(a.holders.cache.entries)
	}
	var texts []string
	var users []testenv.User
	var companies []testenv.Company
	for _, email := range []string{"a@example.com", "b@example.com", "c@example.com"} {
		users = append(users, a.User(t, email))
		companies = append(companies, a.Company(t, email))
		_, text := a.mustToken(t, email)
		texts = append(texts, text)
	}
	for _, try := range []struct {
		forget func()
		left   int
	}{
		{func() { a.holders.ForgetUser(strconv.FormatInt(users[1].ID, 10)) }, 2},
		{func() { a.holders.ForgetCompany(strconv.FormatInt(companies[2].ID, 10)) }, 2},
		{func() { a.holders.ForgetCompany("99") }, 3},
		{func() { a.holders.ForgetUser(notices.Everything) }, 0},
		{func() { a.holders.ForgetCompany(notices.Everything) }, 0},
	} {
		for _, text := range texts {
			if _, err := a.holders.Authenticate(t.Context(), text); err != nil {
				t.Fatal(err)
			}
		}
		if try.forget(); remembered() != try.left {
			t.Errorf("%d left, want %d", remembered(), try.left)
		}
	}
}

// TestReadInProgressIsDropped: a read may have begun before the change of a notice: its result is not cached, and later
// callers do not share it.
func TestReadInProgressIsDropped(t *testing.T) {
	reading, go1 := make(chan struct{}), make(chan struct{})
	reads := 0
	c := newCache(func(_ context.Context, id int64) (*entry, error) {
		if reads++; reads == 1 {
			close(reading)
			<-go1
		}
		return &entry{principal: &accounts.Principal{TokenID: id, UserID: int64(reads)}}, nil
	}, nil)
	var first sync.WaitGroup
	first.Go(func() { _, _ = c.get(t.Context(), 1) })
	<-reading
	c.forgetAll()
	second, err := c.get(t.Context(), 1)
	if err != nil || second.principal.UserID != 2 {
		t.Errorf("a call after the change gets read %v, %v", second, err)
	}
	close(go1)
	first.Wait()
	if e := c.entries[1]; e != nil && e.principal.UserID != 2 {
		t.Error("the result of the earlier read is cached")
	}
}
