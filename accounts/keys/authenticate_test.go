package keys

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"intumwa/accounts"
	"intumwa/accounts/companies"
)

func TestTokenIsShownOnceAndStoredHashed(t *testing.T) {
	a := newWorld(t)
	a.User(t, "a@example.com")
	token, text := a.mustToken(t, " A@Example.com ")
	if !regexp.MustCompile(`^[0-9]+\|[0-9A-Za-z]{40}$`).MatchString(text) {
		t.Fatalf("token text %q", text)
	}
	id, secret, ok := parseToken(text)
	if !ok || id != token.ID {
		t.Fatalf("parseToken(%q) = %d, %v", text, id, ok)
	}
	var stored []byte
	if err := a.Pool.QueryRow(t.Context(), `select secret_hash from api_tokens where id = $1`, id).Scan(
		&stored); err != nil {
		t.Fatal(err)
	}
	if want := sha256.Sum256([]byte(secret)); !bytes.Equal(stored, want[:]) {
		t.Error("the stored value is not the secret's SHA-256")
	}
	if _, other := a.mustToken(t, "a@example.com"); other == text {
		t.Error("two tokens are the same")
	}
}

func TestAuthenticateReturnsTheHolder(t *testing.T) {
	a := newWorld(t)
	user := a.User(t, "a@example.com")
	token, text := a.mustToken(t, "a@example.com")

	p, err := on(a.Pool).holders.Authenticate(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	if want := (&accounts.Principal{UserID: user.ID, TokenID: token.ID, Token: token.TokenLimits}); !reflect.DeepEqual(
		p, want) {
		t.Errorf("a user alone: got %+v, want %+v", p, want)
	}

	company := a.Company(t, "a@example.com")
	one := a.mustSender(t, company.ID, "ONE")
	two, err := a.senders.CreateSender(t.Context(), company.ID, "two", "rw", true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.companies.SetCompany(t.Context(), company.ID,
		companies.CompanyChange{Approved: new(true), SmartEncoding: new(true)}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.testNumbers.SetTestNumber(t.Context(), "a@example.com", "+25779000001", true); err != nil {
		t.Fatal(err)
	}
	p, err = on(a.Pool).holders.Authenticate(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	want := &accounts.Principal{
		UserID: user.ID, TokenID: token.ID, Token: token.TokenLimits, TestNumber: "+25779000001",
		Company: &accounts.Company{
			ID: company.ID, OwnerID: user.ID, Name: "Company", Approved: true, SmartEncoding: true,
			Senders: map[string]accounts.Sender{
				"ONE": {ID: one.ID, Name: "ONE", Country: "BI"},
				"two": {ID: two.ID, Name: "two", Country: "RW", Approved: true},
			},
		},
	}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("got %+v %+v, want %+v %+v", p, p.Company, want, want.Company)
	}
	// A user who has signed in may send the same, without a token.
	want.TokenID, want.Token = 0, accounts.TokenLimits{}
	if p, err = a.holders.PrincipalOf(t.Context(), user.ID); err != nil || !reflect.DeepEqual(p, want) {
		t.Errorf("without a token: got %+v, %v", p, err)
	}
	if _, err := a.holders.PrincipalOf(t.Context(), user.ID+1); !errors.Is(err, accounts.ErrNotFound) {
		t.Errorf("an unknown user: %v", err)
	}
	if _, err := a.holders.Fresh(t.Context(), &accounts.Principal{UserID: user.ID + 1}); !errors.Is(
		err, accounts.ErrUnauthenticated) {
		t.Errorf("an unknown user, read again: %v", err)
	}
	if _, err := a.senders.SetSender(t.Context(), one.ID, true); err != nil {
		t.Fatal(err)
	}
	if fresh, err := a.holders.Fresh(t.Context(), p); err != nil || !fresh.Company.Senders["ONE"].Approved {
		t.Errorf("read again: %+v, %v", fresh, err)
	}
	if _, err := a.testNumbers.SetTestNumber(t.Context(), "a@example.com", "+25779000001", false); err != nil {
		t.Fatal(err)
	}
	if p, err := on(a.Pool).holders.Authenticate(t.Context(), text); err != nil || p.TestNumber != "" {
		t.Errorf("an unverified test number counts: %q, %v", p.TestNumber, err)
	}
}

func TestUnauthenticated(t *testing.T) {
	a := newWorld(t)
	a.User(t, "a@example.com")
	token, text := a.mustToken(t, "a@example.com")
	_, other := a.mustToken(t, "a@example.com")
	_, otherSecret, _ := strings.Cut(other, "|")
	id := strconv.FormatInt(token.ID, 10)
	for name, bearer := range map[string]string{
		"empty":            "",
		"no bar":           strings.Replace(text, "|", "", 1),
		"no id":            text[strings.Index(text, "|"):],
		"short":            text[:len(text)-1],
		"long":             text + "x",
		"another's secret": id + "|" + otherSecret,
		"wrong secret":     id + "|" + strings.Repeat("x", 40),
		"unknown id":       "999999" + text[strings.Index(text, "|"):],
		"negative id":      "-" + text,
		"signed id":        "+" + text,
		"padded id":        "0" + text,
		"huge id":          strings.Repeat("9", 30) + "|" + otherSecret,
		"hash not of text": id + "|" + strings.Repeat("\x00", 40),
	} {
		for range 2 { // from Postgres, then with a warm cache
			if p, err := a.holders.Authenticate(t.Context(), bearer); !errors.Is(err, accounts.ErrUnauthenticated) || p != nil {
				t.Errorf("%s: %+v, %v", name, p, err)
			}
		}
	}
	if _, err := a.holders.Authenticate(t.Context(), text); err != nil {
		t.Errorf("the token itself: %v", err)
	}
}

func TestRevocation(t *testing.T) {
	a := newWorld(t)
	elsewhere := on(a.Pool)
	a.User(t, "a@example.com")
	token, text := a.mustToken(t, "a@example.com")
	p, err := elsewhere.holders.Authenticate(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.holders.Authenticate(t.Context(), text); err != nil {
		t.Fatal(err)
	}

	for range 2 {
		if err := a.keys.RevokeToken(t.Context(), token.ID); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.holders.Authenticate(t.Context(), text); !errors.Is(err, accounts.ErrUnauthenticated) {
		t.Errorf("in the process that revoked it: %v", err)
	}
	if _, err := elsewhere.holders.Fresh(t.Context(), p); !errors.Is(err, accounts.ErrUnauthenticated) {
		t.Errorf("Fresh: %v", err)
	}
	if err := a.keys.RevokeToken(t.Context(), 12345); !errors.Is(err, accounts.ErrNotFound) {
		t.Errorf("an unknown id: %v", err)
	}
	tokens, err := a.keys.TokensOf(t.Context(), p.UserID)
	if err != nil || len(tokens) != 1 || tokens[0].RevokedAt == nil {
		t.Errorf("TokensOf: %+v, %v", tokens, err)
	}
}

func TestFreshSeesARecentApproval(t *testing.T) {
	a := newWorld(t)
	operator := on(a.Pool)
	a.User(t, "a@example.com")
	company := a.Company(t, "a@example.com")
	_, text := a.mustToken(t, "a@example.com")
	for i, approved := range []bool{true, false} {
		p, err := a.holders.Authenticate(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := operator.companies.SetCompany(t.Context(), company.ID,
			companies.CompanyChange{Approved: &approved}); err != nil {
			t.Fatal(err)
		}
		if fresh, err := a.holders.Fresh(t.Context(), p); err != nil || fresh.Company.Approved != approved {
			t.Errorf("round %d: %+v, %v", i, fresh, err)
		}
		if p, err := a.holders.Authenticate(t.Context(), text); err != nil || p.Company.Approved != approved {
			t.Errorf("round %d: what Fresh read is not remembered: %v", i, err)
		}
	}
}

func TestDatabaseAwayIsNotUnauthenticated(t *testing.T) {
	a := newWorld(t)
	a.User(t, "a@example.com")
	_, text := a.mustToken(t, "a@example.com")
	a.Pool.Close()
	if _, err := a.holders.Authenticate(t.Context(), text); err == nil || errors.Is(err, accounts.ErrUnauthenticated) {
		t.Errorf("got %v", err)
	}
	if _, err := a.holders.Fresh(t.Context(), &accounts.Principal{TokenID: 1}); err == nil ||
		errors.Is(err, accounts.ErrUnauthenticated) {
		t.Errorf("Fresh: %v", err)
	}
}

func TestLastUse(t *testing.T) {
	a := newWorld(t)
	user := a.User(t, "a@example.com")
	_, text := a.mustToken(t, "a@example.com")
	id, _, _ := parseToken(text)
	if _, err := a.holders.Authenticate(t.Context(), strconv.FormatInt(id, 10)+"|"+strings.Repeat("x", 40)); err == nil {
		t.Fatal("a wrong secret passed")
	}
	if ids, _ := a.holders.lastUse.take(); len(ids) != 0 {
		t.Error("a wrong secret counts as use")
	}
	for range 3 {
		if _, err := a.holders.Authenticate(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.holders.storeLastUse(t.Context()); err != nil {
		t.Fatal(err)
	}
	tokens, err := a.keys.TokensOf(t.Context(), user.ID)
	if err != nil || tokens[0].LastUsedAt == nil || time.Since(*tokens[0].LastUsedAt) > time.Minute {
		t.Fatalf("%+v, %v", tokens, err)
	}
	a.holders.lastUse.add(tokens[0].ID, tokens[0].LastUsedAt.Add(-time.Hour)) // another process was later
	if err := a.holders.storeLastUse(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again, err := a.keys.TokensOf(t.Context(), user.ID); err != nil ||
		!again[0].LastUsedAt.Equal(*tokens[0].LastUsedAt) {
		t.Errorf("the last use went backwards: %v", err)
	}
}
