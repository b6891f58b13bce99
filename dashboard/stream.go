package dashboard

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
)

const (
	streamsOfUser = 4  // open at a time, one for each browser window
	streamsOfAll  = 64 // in this process

	streamLook    = 500 * time.Millisecond // between two reads of the links
	streamPulse   = 5 * time.Second        // the longest time without output
	streamProof   = 2 * time.Second        // between two checks of the session
	streamWrite   = 5 * time.Second        // for a write; after it the client counts as gone
	streamLongest = 2 * time.Hour          // the longest life of a stream
)

// streams counts the open connections with server-sent events.
type streams struct {
	mu     sync.Mutex
	of     map[int64]int // by user
	all    int
	ended  bool
	ending chan struct{}
}

func newStreams() *streams { return &streams{of: map[int64]int{}, ending: make(chan struct{})} }

// begin counts a stream; false when the limit is reached or the server shuts down.
func (s *streams) begin(user int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.all >= streamsOfAll || s.of[user] >= streamsOfUser {
		return false
	}
	s.all++
	s.of[user]++
	return true
}

func (s *streams) end(user int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	if s.of[user]--; s.of[user] == 0 {
		delete(s.of, user)
	}
}

// EndStreams ends all streams and refuses new ones. Call it when the server shuts down.
func (d *Dashboard) EndStreams() {
	d.streams.mu.Lock()
	defer d.streams.mu.Unlock()
	if !d.streams.ended {
		d.streams.ended = true
		close(d.streams.ending)
	}
}

const openEndedKey = "open-ended"

// openEnded returns the request's context without the time limit of other requests, for streams.
func (v *visit) openEnded() context.Context {
	return v.c.MustGet(openEndedKey).(context.Context)
}

// streamLinks is GET /admin/links/stream: the links as server-sent events
// (https://html.spec.whatwg.org/multipage/server-sent-events.html). It ends with the administrator scope, the session
// and the server.
func (d *Dashboard) streamLinks(v *visit, o operator) {
	if !strings.Contains(v.c.GetHeader("Accept"), "text/event-stream") { // HEAD, or the address bar of a browser: the client does not read events
		v.renderError(http.StatusNotFound)
		return
	}
	if !d.streams.begin(o.User.ID) {
		v.c.Header("Retry-After", "30")
		v.c.AbortWithStatus(http.StatusTooManyRequests)
		return
	}
	defer d.streams.end(o.User.ID)
	v.leave()
	ctx, cancel := context.WithTimeout(v.openEnded(), streamLongest)
	defer cancel()
	out := http.NewResponseController(v.c.Writer)
	say := func(text string) bool {
		if out.SetWriteDeadline(time.Now().Add(streamWrite)) != nil {
			return false
		}
		_, err := v.c.Writer.WriteString(text)
		return err == nil && out.Flush() == nil
	}
	if out.SetReadDeadline(time.Time{}) != nil { // the server's read timeout would end the request
		return
	}
	v.c.Header("Content-Type", "text/event-stream; charset=utf-8")
	v.c.Header("X-Accel-Buffering", "no") // keeps nginx from buffering
	v.c.Status(http.StatusOK)
	if !say("retry: 3000\n\n") {
		return
	}
	look := time.NewTicker(streamLook)
	defer look.Stop()
	var said, proven time.Time
	proven = time.Now() // by this request
	before := ""
	for {
		now, err := d.board.now(ctx)
		if err == nil {
			view := now.view(v.lang)
			at := view.At
			view.At = ""
			text, err := json.Marshal(view)
			if err != nil {
				d.log.Error("link states could not be encoded", "error", err)
				return
			}
			if string(text) != before || time.Since(said) >= streamPulse {
				before, said = string(text), time.Now()
				view.At = at
				text, _ = json.Marshal(view) // it marshalled above
				if !say("event: links\ndata: " + string(text) + "\n\n") {
					return
				}
			}
		} else if time.Since(said) >= streamPulse { // the database is away: the page shows the age of its data
			said = time.Now()
			if !say(": the database does not answer\n\n") {
				return
			}
		}
		if time.Since(proven) >= streamProof {
			open, err := d.rooms.Accounts.AdminScopeOpen(ctx, v.token, d.opts.SessionIdle)
			switch {
			case err == nil && open:
				proven = time.Now()
			case err == nil:
				say("event: end\ndata:\n\n")
				return
			case time.Since(proven) >= 3*streamPulse: // a session that could not be checked for that long does not count as open
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-d.streams.ending:
			return
		case <-look.C:
		}
	}
}

// isStream reports whether a request is a stream, whose duration must not count in the metrics.
func isStream(c *gin.Context) bool { return c.FullPath() == "/admin/links/stream" }
