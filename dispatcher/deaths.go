package dispatcher

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// lookEvery lies between two looks at the others.
	lookEvery = 100 * time.Millisecond
	// absentFor is how long a session must be gone without a break: a connection that
	// is lost while its process lives is made again sooner (Options.AbsentFor).
	absentFor = 300 * time.Millisecond
)

// sight is what this process saw of another dispatcher. For how long is measured by the
// monotonic clock of this machine; the times that stand in the list are the database's, whose
// clock may be set: they are marks, compared with themselves only.
type sight struct {
	gone    time.Time // since when its session has not been seen; zero: it is there
	heard   time.Time // when its last heartbeat was first seen
	session time.Time // mark: when it took its lock
	beat    time.Time // mark: its last heartbeat
}

// listed is a row of the list.
type listed struct {
	ID            int64
	Gone          bool // its session is
	Session, Beat time.Time
}

// someDied takes the dead off the list, and returns whether there were any.
func (m *member) someDied(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, m.d.opts.Heartbeat)
	defer cancel()
	if err := m.removeDead(ctx); err != nil {
		m.d.log.Debug("looking at the other dispatchers", "error", err) // the heartbeat logs it as an error
		return false
	}
	return m.died
}

// beaten notes that a heartbeat succeeded. When this process could not be heard for a while
// (a database that was away, a machine that stood still), the others may not have been heard
// for the same reason: they get the time to come back.
func (m *member) beaten(now time.Time) {
	if !m.last.IsZero() && now.Sub(m.last) > m.deafAfter() {
		m.healed = now
	}
	m.last = now
}

func (m *member) deafAfter() time.Duration { return m.d.opts.DeadAfter / 2 }

// silentSince reports whether a dispatcher has been silent for so long that it is dead: for
// DeadAfter its heartbeat has stood still, while this process's own went on; and for half a
// heartbeat more, in which one that is late may still unbind (linkWorker.yield).
func (m *member) silentSince(seen sight, now time.Time) bool {
	since := seen.heard
	if m.healed.After(since) {
		since = m.healed
	}
	return now.Sub(since) >= m.d.opts.DeadAfter+m.d.opts.Heartbeat/2 && now.Sub(m.last) <= m.deafAfter()
}

// removeDead takes those off the list whose sessions have been gone for Options.AbsentFor
// without a break, and those whose heartbeats have stood still for DeadAfter. When this
// process's own session was lost lately, so were the others', probably, and they get as long
// as it had to be back.
func (m *member) removeDead(ctx context.Context) error {
	me := m.id.Load()
	asked := time.Now()
	rows, err := m.d.pool.Query(ctx, `SELECT d.id, d.session AND NOT EXISTS (SELECT FROM pg_locks WHERE `+sessionLocks+` AND objid::bigint = d.id & 4294967295),
		d.session_at, d.seen_at FROM dispatchers d`, sessionLockKey)
	if err != nil {
		return fmt.Errorf("looking at the dispatchers: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[listed])
	if err != nil {
		return fmt.Errorf("looking at the dispatchers: %w", err)
	}
	answered := time.Now() // the list is of a moment between the two
	l := m.lock.Load()
	others := make(map[int64]sight)
	var absent, silent []listed
	for _, d := range list {
		if d.ID == me {
			if d.Gone && l != nil {
				l.notSeen()
			}
			continue
		}
		before, known := m.others[d.ID]
		seen := sight{session: d.Session, beat: d.Beat, heard: answered}
		if known && before.beat.Equal(d.Beat) {
			seen.heard = before.heard
		}
		if d.Gone {
			if seen.gone = answered; known && before.session.Equal(d.Session) && !before.gone.IsZero() {
				seen.gone = before.gone
			}
		}
		others[d.ID] = seen
		switch {
		case m.silentSince(seen, asked):
			silent = append(silent, d)
		case d.Gone && answered.Sub(seen.gone) >= m.d.opts.AbsentFor:
			absent = append(absent, d)
		}
	}
	for id := range m.others {
		if _, there := others[id]; !there {
			m.d.deaths.note() // whichever process took it off the list
		}
	}
	m.others = others
	if l == nil || !l.stable() {
		absent = nil
	}
	return m.remove(ctx, absent, silent)
}

// remove takes dispatchers off the list, unless they have come back since they were looked
// at: the absent with a session, the silent with a heartbeat.
func (m *member) remove(ctx context.Context, absent, silent []listed) error {
	if len(absent)+len(silent) == 0 {
		return nil
	}
	var ids []int64
	var sessions []time.Time
	var beats []*time.Time
	for _, d := range absent {
		ids, sessions, beats = append(ids, d.ID), append(sessions, d.Session), append(beats, nil)
	}
	for _, d := range silent {
		ids, sessions, beats = append(ids, d.ID), append(sessions, d.Session), append(beats, &d.Beat)
	}
	tag, err := m.d.pool.Exec(ctx, `DELETE FROM dispatchers d USING unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[]) u(id, session, beat)
		WHERE d.id = u.id AND d.session_at = u.session AND (u.beat IS NULL OR d.seen_at = u.beat)`, ids, sessions, beats)
	if err != nil {
		return fmt.Errorf("taking dead dispatchers off the list: %w", err)
	}
	if dead := tag.RowsAffected(); dead > 0 {
		m.died = true
		m.d.log.Warn("a dispatcher died; its claims are freed", "dispatchers", dead)
	}
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
