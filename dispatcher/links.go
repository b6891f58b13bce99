package dispatcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/dispatcher/core"
	"intumwa/internal/postgres"
	"intumwa/messages/rerouting"
)

// ErrNoLink is returned for a link that no dispatcher ever announced.
var ErrNoLink = errors.New("no such link")

// Refuse in the place of a carrier means that no carrier takes over from a retired one.
const Refuse = "refuse"

// staleAfter is the age beyond which a link's reported state is out of date.
const staleAfter = 15 * time.Second

// LinkState is a link's state for operators (rule choices 11.4).
type LinkState struct {
	Carrier   string    `json:"carrier"`
	Link      string    `json:"link"`
	State     string    `json:"state"` // bound, connecting, down or paused
	Window    int       `json:"window"`
	InFlight  int       `json:"in_flight"`
	TPS       float64   `json:"tps"`
	Since     time.Time `json:"since"`
	LastError string    `json:"last_error,omitempty"`

	Accepted  int       `json:"accepted"`  // segments accepted in the last minute
	Throttled int       `json:"throttled"` // segments throttled in the last minute
	Overdue   int       `json:"overdue"`   // in flight for longer than the response timeout
	Broken    bool      `json:"broken"`    // stopped: the carrier is bound and accepts nothing
	ServedAt  time.Time `json:"served_at"` // when it could last carry messages
	Unheld    bool      `json:"unheld"`    // no dispatcher holds it, or none has reported lately

	Refused        Refusals `json:"refused"`      // segments refused in the last minute, by status
	SendersBlocked int      `json:"senders_held"` // senders whose messages wait because the carrier refuses them all

	// RetiredTo is what takes over from the carrier, if that is retired: another one, or refuse. The link submits nothing.
	RetiredTo *string `json:"retired_to"`
}

// Refusals counts refused segments by status.
type Refusals map[string]int

// String lists them, the most frequent first.
func (r Refusals) String() string {
	statuses := slices.SortedFunc(maps.Keys(r), func(a, b string) int {
		return cmp.Or(cmp.Compare(r[b], r[a]), cmp.Compare(a, b))
	})
	for i, s := range statuses {
		statuses[i] = fmt.Sprintf("%s %d", s, r[s])
	}
	return strings.Join(statuses, ", ")
}

// Links returns all links by carrier and name. One without a holder is down.
func Links(ctx context.Context, pool postgres.DB) ([]LinkState, error) {
	return postgres.All(ctx, pool, "reading the links", func(row pgx.CollectableRow) (l LinkState, err error) {
		err = row.Scan(&l.Carrier, &l.Link, &l.State, &l.Window, &l.InFlight, &l.TPS, &l.Since, &l.LastError,
			&l.Accepted, &l.Throttled, &l.Overdue, &l.Broken, &l.ServedAt, &l.Unheld, &l.Refused,
			&l.SendersBlocked, &l.RetiredTo)
		return l, err
	}, `
		SELECT carrier, name,
			CASE WHEN paused THEN 'paused' WHEN unheld THEN 'down' ELSE state END,
			"window", CASE WHEN unheld THEN 0 ELSE in_flight END, tps,
			CASE WHEN unheld AND NOT paused AND state <> 'down' THEN updated_at ELSE since END, last_error,
			CASE WHEN unheld THEN 0 ELSE accepted END, CASE WHEN unheld THEN 0 ELSE throttled END, CASE WHEN unheld THEN 0
			ELSE overdue END,
			broken, served_at, unheld, CASE WHEN unheld THEN '{}' ELSE refused END, CASE WHEN unheld THEN 0
			ELSE senders_held END,
			coalesce(nullif(retired_to, ''), CASE WHEN retired_to = '' THEN '`+Refuse+`' END)
		FROM (SELECT *, `+rerouting.RetiredTo("links.carrier")+` AS retired_to, (NOT `+core.Leased+`
			OR updated_at NOT BETWEEN now() - $1::interval AND
				now() + $1::interval) AS unheld -- the clock may have been set back
			FROM links) l
		ORDER BY carrier, name`, staleAfter)
}

// SetPaused pauses or resumes a link, and returns the state that will be reported.
// The link's holder applies it when notified, at the latest at its next heartbeat.
func SetPaused(ctx context.Context, pool postgres.DB, link string, paused bool) (state string, err error) {
	err = pool.QueryRow(ctx, `UPDATE links SET paused = $2, since = CASE WHEN paused = $2 THEN since ELSE now() END
		WHERE name = $1
		RETURNING CASE WHEN paused THEN 'paused' WHEN NOT `+core.Leased+` OR state = 'paused' THEN 'down' ELSE state END`,
		link, paused).Scan(&state)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", fmt.Errorf("%s: %w", link, ErrNoLink)
	}
	if err != nil {
		return "", fmt.Errorf("pausing %s: %w", link, err)
	}
	return state, nil
}

// IsPaused reports whether an operator has paused a link. It locks the link's row
// until the transaction ends.
func IsPaused(ctx context.Context, tx pgx.Tx, link string) (paused bool, err error) {
	err = tx.QueryRow(ctx, `SELECT paused FROM links WHERE name = $1 FOR UPDATE`, link).Scan(&paused)
	if errors.Is(err, pgx.ErrNoRows) || postgres.Refused(err) { // no name has a NUL
		return false, fmt.Errorf("%s: %w", link, ErrNoLink)
	}
	if err != nil {
		return false, fmt.Errorf("looking at %s: %w", link, err)
	}
	return paused, nil
}
