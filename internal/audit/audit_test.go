package audit

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func record(t *testing.T, pool *pgxpool.Pool, e Entry) error {
	t.Helper()
	return pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return Record(t.Context(), tx, e) })
}

func TestRecorded(t *testing.T) {
	pool := testenv.Pool(t)
	type flags struct {
		Approved bool `json:"approved"`
	}
	for i := range 5 {
		e := Entry{Actor: "ann@ops", Act: "company.set", Subject: "company 12", Company: 12, Before: flags{false},
			After: flags{true}}
		if i == 4 {
			e = Entry{Actor: User(7), Act: "link.pause", Subject: "link lumitel-1\x1b[2J", After: map[string]any{"paused": true}}
		}
		if err := record(t, pool, e); err != nil {
			t.Fatal(err)
		}
	}
	all, next, err := List(t.Context(), pool, Filter{}, 0, 3)
	if err != nil || len(all) != 3 || next != all[2].ID {
		t.Fatalf("%d acts, next %d, %v", len(all), next, err)
	}
	if a := all[0]; a.Actor != "user 7" || a.Subject != "link lumitel-1?[2J" || a.Before != nil ||
		string(a.After) != `{"paused": true}` || a.Company != 0 || time.Since(a.At) > time.Minute {
		t.Errorf("the latest: %+v", a)
	}
	if a := all[1]; string(a.Before) != `{"approved": false}` || string(a.After) != `{"approved": true}` ||
		a.Company != 12 {
		t.Errorf("the one before: %+v", a)
	}
	rest, next, err := List(t.Context(), pool, Filter{}, next, 3)
	if err != nil || len(rest) != 2 || next != 0 {
		t.Errorf("the next page: %d, next %d, %v", len(rest), next, err)
	}
	for _, f := range []Filter{{Company: 12}, {Company: 12, Since: time.Now().Add(-time.Hour)}, {Actor: "ann@ops"},
		{Actor: "ann@ops", Until: time.Now().Add(time.Hour)}} {
		if of, _, err := List(t.Context(), pool, f, 0, 100); err != nil || len(of) != 4 {
			t.Errorf("%+v: %d acts, %v", f, len(of), err)
		}
	}
	if earlier, _, err := List(t.Context(), pool, Filter{Until: time.Now().Add(-time.Hour)}, 0, 100); err != nil ||
		len(earlier) != 0 {
		t.Errorf("of the past: %d, %v", len(earlier), err)
	}
	if later, _, err := List(t.Context(), pool, Filter{Since: time.Now().Add(time.Hour)}, 0, 100); err != nil ||
		len(later) != 0 {
		t.Errorf("of the future: %d, %v", len(later), err)
	}
}

// Audit rows cannot be changed, not even from psql.
func TestInsertOnly(t *testing.T) {
	pool := testenv.Pool(t)
	if err := record(t, pool, Entry{Actor: "a", Act: "b", Subject: "c"}); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{`UPDATE audit_log SET actor = 'somebody else'`, `DELETE FROM audit_log`,
		`TRUNCATE audit_log`} {
		if _, err := pool.Exec(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "insert only") {
			t.Errorf("%s: %v", statement, err)
		}
	}
}

// A rolled-back change is not recorded.
func TestInTheTransactionOfTheChange(t *testing.T) {
	pool := testenv.Pool(t)
	undone := errors.New("undone")
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if err := Record(t.Context(), tx, Entry{Actor: "a", Act: "b", Subject: "c"}); err != nil {
			return err
		}
		return undone
	})
	if !errors.Is(err, undone) {
		t.Fatal(err)
	}
	if all, _, err := List(t.Context(), pool, Filter{}, 0, 1); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestNoSecrets(t *testing.T) {
	pool := testenv.Pool(t)
	for _, state := range []any{
		map[string]any{"secret": "whsec_x"}, struct {
			Token string `json:"token"`
		}{"1|x"},
		map[string]any{"user": []any{map[string]any{"new_password": "x"}}},
	} {
		if err := record(t, pool, Entry{Actor: "a", Act: "b", Subject: "c", After: state}); !errors.Is(err, errSecret) {
			t.Errorf("%v: %v", state, err)
		}
		if err := record(t, pool, Entry{Actor: "a", Act: "b", Subject: "c", Before: state}); !errors.Is(err, errSecret) {
			t.Errorf("%v: %v", state, err)
		}
	}
	if err := record(t, pool, Entry{Actor: "a", Act: "b", Subject: "c",
		After: map[string]any{"token_id": 7, "secret": true}}); err != nil {
		t.Errorf("that there is a secret is none: %v", err)
	}
	if err := record(t, pool, Entry{Actor: "a", Act: "b", Subject: "c",
		After: strings.Repeat("x", maxState)}); err == nil {
		t.Error("a state of any size is kept")
	}
}

func TestOperator(t *testing.T) {
	if who := Operator(); who == "" || strings.HasPrefix(who, "@") {
		t.Errorf("%q", who)
	}
}
