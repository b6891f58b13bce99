// Package acts keeps who changed what: every administrative act, by a page or by
// a command, in the transaction of the change. Its table takes rows and lets none
// be changed or deleted.
//
// An act has no secrets: [Record] refuses what is named like one. A page writes
//
//	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
//		before, err := users.In(tx).CompanyByID(ctx, id)
//		…
//		after, err := users.In(tx).SetCompany(ctx, id, change)
//		…
//		return acts.Record(ctx, tx, acts.Entry{Actor: acts.User(administrator.ID), Act: "company.set",
//			Subject: "company 12", Company: 12, Before: flagsOf(before), After: flagsOf(after)})
//	})
package acts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5"

	"intumwa/sms"
)

const (
	maxText  = 200      // code points of an actor, an act, a subject
	maxState = 16 << 10 // octets of what was, and of what is
)

// Entry is an act as it is recorded.
type Entry struct {
	Actor   string        // User of a page, Operator of a command
	Act     string        // company.set, token.revoke, …
	Subject string        // "company 12", "link lumitel-1"
	Company sms.CompanyID // whom it concerns; 0 when it is not one company
	Before  any           // what was, as JSON shows it; nil: nothing
	After   any           // what is; nil: nothing any more
}

// Act is an act as it was recorded.
type Act struct {
	ID      int64
	At      time.Time
	Actor   string
	Act     string
	Subject string
	Company sms.CompanyID
	Before  json.RawMessage // nil: nothing
	After   json.RawMessage // nil: nothing
}

// User is how a user of the pages is named as an actor.
func User(id int64) string { return "user " + strconv.FormatInt(id, 10) }

// Operator is how whoever runs this process is named as an actor: the operating
// system's user at the host. Who became that user by sudo is named as well.
func Operator() string {
	name := "uid " + strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	if by := os.Getenv("SUDO_USER"); by != "" && os.Getuid() == 0 {
		name += " for " + by
	}
	return clean(name)
}

// clean makes a text fit to be kept and shown on one line.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if runes := []rune(text); len(runes) > maxText {
		text = string(runes[:maxText])
	}
	return text
}

// Record writes an act within the transaction that does it.
func Record(ctx context.Context, tx pgx.Tx, e Entry) error {
	before, err := stateOf(e.Before)
	if err != nil {
		return fmt.Errorf("recording %s: before: %w", e.Act, err)
	}
	after, err := stateOf(e.After)
	if err != nil {
		return fmt.Errorf("recording %s: after: %w", e.Act, err)
	}
	var company *int64
	if e.Company.Valid() {
		id := int64(e.Company)
		company = &id
	}
	_, err = tx.Exec(ctx, `INSERT INTO acts (actor, act, subject, company_id, before, after) VALUES ($1, $2, $3, $4, $5, $6)`,
		clean(e.Actor), clean(e.Act), clean(e.Subject), company, before, after)
	if err != nil {
		return fmt.Errorf("recording %s: %w", e.Act, err)
	}
	return nil
}

// stateOf answers the JSON of a state, nil for none.
func stateOf(state any) ([]byte, error) {
	if state == nil {
		return nil, nil
	}
	text, err := json.Marshal(state)
	if err != nil {
		return nil, err
	}
	if len(text) > maxState {
		return nil, fmt.Errorf("%d octets are more than %d", len(text), maxState)
	}
	var read any
	if err := json.Unmarshal(text, &read); err != nil {
		return nil, err
	}
	return text, refuseSecrets(read)
}

var errSecret = errors.New("a secret is not for the record")

// secrets are names of what nobody but its owner may read.
var secrets = []string{"secret", "password", "token", "code", "otp"}

func refuseSecrets(state any) error {
	switch v := state.(type) {
	case map[string]any:
		for key, inner := range v {
			name := strings.ToLower(key)
			if text, isText := inner.(string); isText && text != "" &&
				slices.ContainsFunc(secrets, func(s string) bool { return name == s || strings.HasSuffix(name, "_"+s) }) {
				return fmt.Errorf("%q: %w", key, errSecret)
			}
			if err := refuseSecrets(inner); err != nil {
				return err
			}
		}
	case []any:
		for _, inner := range v {
			if err := refuseSecrets(inner); err != nil {
				return err
			}
		}
	}
	return nil
}

// Filter says which acts a list has; a zero field all.
type Filter struct {
	Company sms.CompanyID
	Actor   string // exactly as it is recorded
	Since   time.Time
	Until   time.Time // before then
}

// database is a pool or a transaction.
type database interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// List returns up to limit acts, the latest first, from the first with an id
// below before (0: the latest there is) on, and where to go on from: 0 when
// there are no more.
func List(ctx context.Context, db database, f Filter, before int64, limit int) (page []Act, next int64, err error) {
	if before <= 0 {
		before = math.MaxInt64
	}
	args := []any{before, limit + 1}
	condition := `id < $1`
	if f.Company != 0 {
		args = append(args, int64(f.Company))
		condition += fmt.Sprintf(` AND company_id = $%d`, len(args))
	}
	if !f.Since.IsZero() {
		args = append(args, f.Since)
		condition += fmt.Sprintf(` AND at >= $%d`, len(args))
	}
	if !f.Until.IsZero() {
		args = append(args, f.Until)
		condition += fmt.Sprintf(` AND at < $%d`, len(args))
	}
	if f.Actor != "" {
		args = append(args, f.Actor)
		condition += fmt.Sprintf(` AND actor = $%d`, len(args))
	}
	rows, err := db.Query(ctx, `SELECT id, at, actor, act, subject, coalesce(company_id, 0), before, after FROM acts
		WHERE `+condition+` ORDER BY id DESC LIMIT $2`, args...)
	if err != nil {
		return nil, 0, fmt.Errorf("listing acts: %w", err)
	}
	page, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (a Act, err error) {
		err = row.Scan(&a.ID, &a.At, &a.Actor, &a.Act, &a.Subject, &a.Company, &a.Before, &a.After)
		return a, err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("listing acts: %w", err)
	}
	if len(page) > limit {
		page = page[:limit]
		return page, page[limit-1].ID, nil
	}
	return page, 0, nil
}
