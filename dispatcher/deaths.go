package dispatcher

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// lookEvery lies between two looks at the others' sessions.
	lookEvery = 100 * time.Millisecond
	// absentFor is how long a session must be gone without a break: a connection that
	// is lost while its process lives is made again sooner (Options.AbsentFor).
	absentFor = 300 * time.Millisecond
)

// sight is what the last look saw of another dispatcher.
type sight struct {
	gone    time.Time // since when its session has not been seen; zero: it is there
	session time.Time // when it took its lock
}

// someDied takes those off the list whose session locks are gone, and returns whether
// there were any.
func (m *member) someDied(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, m.d.opts.Heartbeat)
	defer cancel()
	if err := m.removeAbsent(ctx); err != nil {
		m.d.log.Debug("looking at the other dispatchers' sessions", "error", err) // the heartbeat logs it as an error
		return false
	}
	return m.died
}

// mayDeclareDead reports whether the others' silence is theirs. When this process could
// not be heard for a while (a database that was away, a machine that stood
// still), they may not have been heard for the same reason: they get the time
// to come back.
func (m *member) mayDeclareDead() bool {
	now := time.Now()
	if !m.last.IsZero() && now.Sub(m.last) > m.d.opts.DeadAfter/2 {
		m.healed = now
	}
	m.last = now
	return now.Sub(m.healed) >= m.d.opts.DeadAfter
}

// removeSilent takes those off the list that have been silent for too long.
func (m *member) removeSilent(ctx context.Context) error {
	tag, err := m.d.pool.Exec(ctx, `DELETE FROM dispatchers WHERE seen_at < now() - $1::interval`, m.d.opts.DeadAfter)
	if err != nil {
		return fmt.Errorf("looking for dead dispatchers: %w", err)
	}
	m.noteDead(tag.RowsAffected())
	return nil
}

func (m *member) noteDead(dead int64) {
	if dead > 0 {
		m.died = true
		m.d.log.Warn("a dispatcher died; its claims are freed", "dispatchers", dead)
	}
}

// removeAbsent takes those off the list whose sessions have been gone for
// Options.AbsentFor without a break. When this process's own was lost lately, so were theirs, probably,
// and they get as long as it had to be back.
func (m *member) removeAbsent(ctx context.Context) error {
	me := m.id.Load()
	rows, err := m.d.pool.Query(ctx, `SELECT d.id, d.session AND NOT EXISTS (SELECT FROM pg_locks WHERE `+sessionLocks+` AND objid::bigint = d.id & 4294967295), d.session_at
		FROM dispatchers d`, sessionLockKey)
	if err != nil {
		return fmt.Errorf("looking at the dispatchers: %w", err)
	}
	now := time.Now()
	others := make(map[int64]sight)
	var dead []int64
	var sessions []time.Time // of the dead
	var id int64
	var session time.Time
	var gone, unseen bool
	if _, err := pgx.ForEachRow(rows, []any{&id, &gone, &session}, func() error {
		if id == me {
			unseen = gone
			return nil
		}
		seen := sight{session: session}
		if gone {
			if seen.gone = now; session.Equal(m.others[id].session) && !m.others[id].gone.IsZero() {
				seen.gone = m.others[id].gone
			}
			if now.Sub(seen.gone) >= m.d.opts.AbsentFor {
				dead, sessions = append(dead, id), append(sessions, session)
			}
		}
		others[id] = seen
		return nil
	}); err != nil {
		return fmt.Errorf("looking at the dispatchers: %w", err)
	}
	for id := range m.others {
		if _, there := others[id]; !there {
			m.d.deaths.note() // whichever process took it off the list
		}
	}
	m.others = others
	l := m.lock.Load()
	if l != nil && unseen {
		l.notSeen()
	}
	if len(dead) == 0 || l == nil || !l.stable() {
		return nil
	}
	tag, err := m.d.pool.Exec(ctx, `DELETE FROM dispatchers d USING unnest($1::bigint[], $2::timestamptz[]) u(id, session)
		WHERE d.id = u.id AND d.session_at = u.session`, dead, sessions)
	if err != nil {
		return fmt.Errorf("taking dead dispatchers off the list: %w", err)
	}
	m.noteDead(tag.RowsAffected())
	return nil
}

// deaths wakes the tasks when a dispatcher died whose claims are to be freed.
type deaths struct {
	some    atomic.Bool
	wake    chan struct{}
	unfreed bool // there may be claims of the dead; the tasks'
}

func (d *deaths) note() {
	d.some.Store(true)
	signal(d.wake)
}
