package administration

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/dispatcher"
	"intumwa/internal/postgres"
	"intumwa/messages/outbox"
	"intumwa/sms"
	"intumwa/texts"
)

const (
	backlogEvery = 5 * time.Second // maximum age of shown backlogs: counting large ones is expensive
	boardTimeout = 3 * time.Second // for reading the database
)

// Board reads the link states of all processes, and caches the backlogs of their carriers.
type Board struct {
	pool *pgxpool.Pool

	mu       sync.Mutex
	backlogs map[string]backlog // by carrier
	counted  time.Time
}

// NewBoard returns a board that reads the pool.
func NewBoard(pool *pgxpool.Pool) *Board { return &Board{pool: pool} }

// links is the state of all links and the backlogs of their carriers.
type links struct {
	At       time.Time
	Links    []dispatcher.LinkState
	Backlogs map[string]backlog // by carrier
}

type backlog struct {
	Messages int64
	Due      time.Duration // how long the longest-due message has been due
}

func (b *Board) now(ctx context.Context) (now links, err error) {
	ctx, cancel := context.WithTimeout(ctx, boardTimeout)
	defer cancel()
	if now.Links, err = dispatcher.Links(ctx, b.pool); err != nil {
		return now, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.counted) >= backlogEvery {
		list, err := outbox.New(b.pool).Backlogs(ctx)
		if err != nil {
			return now, err
		}
		b.backlogs, b.counted = map[string]backlog{}, time.Now()
		for _, lane := range list {
			sum := b.backlogs[lane.Carrier]
			b.backlogs[lane.Carrier] = backlog{sum.Messages + lane.Messages, max(sum.Due, lane.Due)}
		}
	}
	now.Backlogs, now.At = b.backlogs, time.Now()
	return now, nil
}

// Carriers returns the carriers of all links.
func (b *Board) Carriers(ctx context.Context) (names []string, err error) {
	now, err := b.now(ctx)
	for i := range now.Links {
		names = append(names, now.Links[i].Carrier)
	}
	return names, err
}

// boardView is the state of the links for a user.
type boardView struct {
	At       string
	Kind     severity // the worst of all links
	Title    string
	Sick     []problemView
	Carriers []carrierView
}

type problemView struct {
	Name string
	Kind severity
	Why  string
}

type carrierView struct {
	Name    string
	Kind    severity
	Waiting string
	Links   []linkView
}

type linkView struct {
	dispatcher.LinkState

	Name   string
	Kind   severity
	Shown  string // the state
	Lasted string
	Why    string
	Error  string // the carrier's error text; empty: none

	Refusals string // of the last minute, by status; empty: none
	Full     int    // percent of the window
	Pace     string
}

// Ages at which a backlog is shown as a warning and as a problem.
const (
	dueLate    = time.Minute
	dueTooLate = 5 * time.Minute
	outage     = 10 * time.Second // a link that carries nothing for longer is down
)

// severity is how bad a state is.
type severity int

// The severities, from the best to the worst.
const (
	off severity = iota
	good
	wait
	bad
)

// String returns the class of badges and borders.
func (s severity) String() string { return []string{"off", "good", "wait", "bad"}[s] }

// view returns the state of the links in a language.
func (s *links) view(l *texts.Language) boardView {
	view := boardView{At: l.Clock(postgres.Moment(s.At)), Kind: good}
	by := map[string]int{}
	carrierOf := func(name string) *carrierView {
		i, known := by[name]
		if !known {
			i, by[name] = len(view.Carriers), len(view.Carriers)
			view.Carriers = append(view.Carriers, carrierView{Name: sms.Printable(name), Kind: good})
		}
		return &view.Carriers[i]
	}
	well := 0
	for i := range s.Links {
		link := s.Links[i]
		row := viewOf(l, link, s.At)
		c := carrierOf(link.Carrier)
		c.Links = append(c.Links, row)
		if row.Kind == good {
			well++
			continue
		}
		view.Sick = append(view.Sick, problemView{row.Name, row.Kind, row.Why})
		view.Kind = max(view.Kind, row.Kind, wait)
	}
	for name := range s.Backlogs {
		carrierOf(name) // a carrier without links may have a backlog too
	}
	for name := range by {
		c, waits := carrierOf(name), s.Backlogs[name]
		switch {
		case waits.Messages == 0:
			c.Waiting = l.T("links.waiting.none")
		case waits.Due < time.Second:
			c.Waiting = l.N("links.waiting", waits.Messages)
		default:
			c.Waiting = l.N("links.waiting", waits.Messages) + " " + l.T("links.waiting.due", age(l, waits.Due))
		}
		switch {
		case waits.Messages > 0 && len(c.Links) == 0:
			c.Kind = bad
			view.Sick = append(view.Sick, problemView{c.Name, bad, l.T("links.why.nolink")})
		case waits.Due >= dueTooLate:
			c.Kind = bad
		case waits.Due >= dueLate:
			c.Kind = wait
		}
		view.Kind = max(view.Kind, c.Kind)
	}
	slices.SortFunc(view.Carriers, func(a, b carrierView) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(view.Sick, func(a, b problemView) int { return int(b.Kind - a.Kind) })
	switch {
	case len(s.Links) == 0 && len(view.Sick) == 0:
		view.Kind, view.Title = wait, l.T("links.none")
	case len(view.Sick) == 0 && view.Kind == good:
		view.Title = l.N("links.allwell", well)
	case len(view.Sick) == 0:
		view.Title = l.T("links.slow")
	default:
		view.Title = l.N("links.somesick", len(view.Sick), len(s.Links))
	}
	return view
}

// viewOf returns one link's state, with its worst problem.
func viewOf(l *texts.Language, link dispatcher.LinkState, now time.Time) linkView {
	row := linkView{LinkState: link, Name: sms.Printable(link.Link), Kind: good,
		Lasted: age(l, max(now.Sub(link.Since), 0)),
		Full:   100 * min(link.InFlight, link.Window) / max(link.Window, 1), Pace: l.T("links.unbounded")}
	if link.TPS > 0 {
		row.Pace = l.T("links.persecond", strconv.FormatFloat(link.TPS, 'f', -1, 64))
		if link.TPS >= 10 {
			row.Pace = l.T("links.persecond", int64(link.TPS))
		}
	}
	if link.LastError != "" && link.State != "bound" {
		row.Error = sms.Printable(link.LastError)
	}
	if len(link.Refused) > 0 {
		row.Refusals = l.T("links.refused", link.Refused.String())
	}
	switch {
	case link.RetiredTo != nil && link.State != "bound" && !link.Unheld && link.State != "paused":
		row.Kind, row.Shown, row.Why = wait, l.T("links.state.retired"), l.T("links.why.retired.down")
	case link.RetiredTo != nil && *link.RetiredTo == dispatcher.Refuse:
		row.Kind, row.Shown, row.Why = off, l.T("links.state.retired"), l.T("links.why.closed")
	case link.RetiredTo != nil:
		row.Kind, row.Shown, row.Why = off, l.T("links.state.retired"),
			l.T("links.why.retired", sms.Printable(*link.RetiredTo))
	case link.State == "paused":
		row.Kind, row.Shown, row.Why = off, l.T("links.state.paused"), l.T("links.why.paused")
	case link.Unheld:
		row.Kind, row.Shown, row.Why = bad, l.T("links.state.down"), l.T("links.why.unheld")
	case link.Broken:
		row.Kind, row.Shown, row.Why, row.Error = bad, l.T("links.state.stopped"), l.T("links.why.broken"),
			sms.Printable(link.LastError)
	case link.State != "bound" && now.Sub(link.ServedAt) < outage: // down briefly: links usually recover
		row.Kind, row.Shown, row.Why = wait, l.T("links.state.connecting"), l.T("links.why.connecting")
	case link.State != "bound": // reconnecting: shown with the time since it last carried messages
		row.Lasted = age(l, now.Sub(link.ServedAt))
		row.Kind, row.Shown, row.Why = bad, l.T("links.state.down"), l.T("links.why.down")
	case 2*link.Overdue >= link.Window && link.Overdue > 0:
		row.Kind, row.Shown, row.Why = bad, l.T("links.state.silent"), l.N("links.why.silent", link.Overdue)
	case link.Overdue > 0:
		row.Kind, row.Shown, row.Why = wait, l.T("links.state.bound"), l.N("links.why.silent", link.Overdue)
	case link.SendersBlocked > 0:
		row.Kind, row.Shown, row.Why, row.Error = wait, l.T("links.state.bound"), l.N("links.why.held", link.SendersBlocked),
			sms.Printable(link.LastError)
	case link.Throttled > 0:
		row.Kind, row.Shown, row.Why = wait, l.T("links.state.throttled"), l.N("links.why.throttled", link.Throttled)
	default:
		row.Shown, row.Why = l.T("links.state.bound"), l.T("links.why.good")
	}
	return row
}

// age returns a duration in its two largest units.
func age(l *texts.Language, d time.Duration) string {
	switch {
	case d < time.Minute:
		return l.T("links.seconds", int64(d/time.Second))
	case d < time.Hour:
		return l.T("links.minutes", int64(d/time.Minute))
	case d < 48*time.Hour:
		return l.T("links.hours", int64(d/time.Hour), int64(d%time.Hour/time.Minute))
	}
	return l.T("links.days", int64(d/(24*time.Hour)))
}
