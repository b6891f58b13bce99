package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
)

// lookupWait is how long a look-up waits for its turn among its user's, and then
// once more so long among all.
const lookupWait = time.Second

// lookups are the look-ups that may be at the database at once: of everybody
// together, and of one user. Sends are none of them: they have a pool of their
// own.
//
// A user's turn is over when its look-up has taken its time once more, so that
// one who asks over many connections keeps the database busy half of the time
// at most; one who asks over one connection does not notice.
type lookups struct {
	all chan struct{}
	own int // of one user

	mu    sync.Mutex
	users map[int64]*userLookups
}

type userLookups struct {
	turns   chan struct{}
	present int // who has one or waits
}

func newLookups(all, own int) *lookups {
	return &lookups{all: make(chan struct{}, all), own: own, users: make(map[int64]*userLookups)}
}

// enter waits for a turn; leave gives it back, and does nothing more after that. When
// none came it answers the status that says whose fault that is.
func (l *lookups) enter(ctx context.Context, user int64) (leave func(), status int) {
	own := l.of(user)
	if !turn(ctx, own.turns) {
		l.gone(user, own)
		return nil, http.StatusTooManyRequests
	}
	if !turn(ctx, l.all) {
		<-own.turns
		l.gone(user, own)
		return nil, http.StatusServiceUnavailable
	}
	start := time.Now()
	return sync.OnceFunc(func() {
		<-l.all
		time.AfterFunc(min(time.Since(start), lookupWait), func() {
			<-own.turns
			l.gone(user, own)
		})
	}), 0
}

func turn(ctx context.Context, turns chan struct{}) bool {
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

func (l *lookups) of(user int64) *userLookups {
	l.mu.Lock()
	defer l.mu.Unlock()
	u := l.users[user]
	if u == nil {
		u = &userLookups{turns: make(chan struct{}, l.own)}
		l.users[user] = u
	}
	u.present++
	return u
}

func (l *lookups) gone(user int64, u *userLookups) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if u.present--; u.present == 0 {
		delete(l.users, user)
	}
}

// lookup lets a look-up pass when it is its turn: 429 for a user who has too
// many under way, 503 when all have. Its turn ends when the answer is known
// (deliver): whoever does not read it holds up nobody.
func (a *API) lookup(c *gin.Context) {
	leave, refused := a.lookups.enter(c.Request.Context(), caller(c).UserID)
	switch refused {
	case 0:
		defer leave()
		c.Set(leaveKey, leave)
		c.Next()
	case http.StatusTooManyRequests:
		tryAfter(c, lookupWait)
		refuse(c, tooManyLookups)
	default:
		tryAfter(c, lookupWait)
		refuse(c, unavailable)
	}
}
