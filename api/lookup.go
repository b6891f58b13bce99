package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
)

// lookupWait is how long a look-up waits for a slot of its user, and then for one
// of all slots.
const lookupWait = time.Second

// lookups limits the concurrent database look-ups: in total, and per user. Sends do
// not count: they have a connection pool of their own.
//
// A user's slot stays taken for as long again as the look-up lasted. So a user with
// many connections keeps the database busy at most half of the time; a user with one
// connection does not notice.
type lookups struct {
	all     chan struct{}
	perUser int

	mu    sync.Mutex
	users map[int64]*userLookups
}

type userLookups struct {
	turns   chan struct{}
	callers int // callers that hold a slot or wait for one
}

func newLookups(all, own int) *lookups {
	return &lookups{all: make(chan struct{}, all), perUser: own, users: make(map[int64]*userLookups)}
}

// enter waits for a slot. leave releases it; further calls of leave do nothing. When
// no slot became free, status is the HTTP status to respond with.
func (l *lookups) enter(ctx context.Context, user int64) (leave func(), status int) {
	own := l.userOf(user)
	if !takeTurn(ctx, own.turns) {
		l.release(user, own)
		return nil, http.StatusTooManyRequests
	}
	if !takeTurn(ctx, l.all) {
		<-own.turns
		l.release(user, own)
		return nil, http.StatusServiceUnavailable
	}
	start := time.Now()
	return sync.OnceFunc(func() {
		<-l.all
		time.AfterFunc(min(time.Since(start), lookupWait), func() {
			<-own.turns
			l.release(user, own)
		})
	}), 0
}

func takeTurn(ctx context.Context, turns chan struct{}) bool {
	timer := time.NewTimer(lookupWait)
	defer timer.Stop()
	select {
	case turns <- struct{}{}:
		return true
	case <-timer.C:
		return false
	case <-ctx.Done():
		return false
	}
}

func (l *lookups) userOf(user int64) *userLookups {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.users[user]
	if u == nil {
		u = &userLookups{turns: make(chan struct{}, l.perUser)}
		l.users[user] = u
	}
	u.callers++
	return u
}

func (l *lookups) release(user int64, u *userLookups) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if u.callers--; u.callers == 0 {
		delete(l.users, user)
	}
}

// lookup is the middleware of look-ups: 429 when the user's slots are taken, 503 when
// all are. The slot is released before the response is written (writeBody), so that
// a client that reads slowly does not hold one.
func (a *API) lookup(c *gin.Context) {
	leave, refused := a.lookups.enter(c.Request.Context(), caller(c).UserID)
	switch refused {
	case 0:
		defer leave()
		c.Set(releaseKey, leave)
		c.Next()
	case http.StatusTooManyRequests:
		setRetryAfter(c, lookupWait)
		writeRefusal(c, tooManyLookups)
	default:
		setRetryAfter(c, lookupWait)
		writeRefusal(c, unavailable)
	}
}
