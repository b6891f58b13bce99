// Package audit is the audit log: every administrative act, by a page or a command, is
// recorded in the transaction of the change. Rows of its table cannot be changed or
// deleted.
//
// An act contains no secrets: [Record] refuses fields that are named like one. Only the package operations calls it.
package audit

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
	maxState = 16 << 10 // bytes of Before, and of After
)

// Entry is an act to record.
type Entry struct {
	Actor   string        // User of a page, Operator of a command
	Act     string        // company.set, token.revoke, …
	Subject string        // "company 12", "link lumitel-1"
	Company sms.CompanyID // 0 when the act does not concern one company
	Before  any           // the state before, marshalled as JSON; nil: none
	After   any           // the state after; nil: none
}

// Act is a recorded act.
type Act struct {
	ID      int64
	At      time.Time
	Actor   string
	Act     string
	Subject string
	Company sms.CompanyID
	Before  json.RawMessage // nil: none
	After   json.RawMessage // nil: none
}

// User returns the name of a dashboard user as an actor.
func User(id int64) string { return "user " + strconv.FormatInt(id, 10) }

// Operator returns the name of the user of this process as an actor: the operating
// system's user at the host, and the original user when sudo was used.
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

// clean shortens a text and makes it one printable line.
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

// Record writes an act in the transaction of its change.
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
	_, err = tx.Exec(ctx, `INSERT INTO audit_log (actor, act, subject, company_id, before, after)
		VALUES ($1, $2, $3, $4, $5, $6)`,
		clean(e.Actor), clean(e.Act), clean(e.Subject), company, before, after)
	if err != nil {
		return fmt.Errorf("recording %s: %w", e.Act, err)
	}
	return nil
}

// stateOf returns the JSON of a state, nil for none.
func stateOf(state any) ([]byte, error) {
	if state == nil {
		return nil, nil
	}
	text, err := json.Marshal(state)
	if err != nil {
		return nil, err
	}
	if len(text) > maxState {
		return nil, fmt.Errorf("%d bytes are more than %d", len(text), maxState)
	}
	var read any
	if err := json.Unmarshal(text, &read); err != nil {
		return nil, err
	}
	return text, refuseSecrets(read)
}

var errSecret = errors.New("a secret is not for the record")

// secrets are parts of names of fields that must not be recorded.
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

// Filter selects acts; a zero field selects all.
type Filter struct {
	Company sms.CompanyID
	Actor   string // exactly as it is recorded
	Since   time.Time
	Until   time.Time // before then
	Message int64     // whose id is among message_ids of After
}

// database is a pool or a transaction.
type database interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// List returns up to limit acts with ids below before (0: from the latest), the
// latest first, and the before of the next page: 0 when there are no more.
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
	if f.Message != 0 {
		args = append(args, f.Message)
		condition += fmt.Sprintf(` AND after->'message_ids' @> to_jsonb($%d::bigint)`, len(args))
	}
	rows, err := db.Query(ctx, `SELECT id, at, actor, act, subject, coalesce(company_id, 0), before, after FROM audit_log
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
