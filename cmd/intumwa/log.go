package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"intumwa/sms"
)

// What goes on failing is one line as it begins and one now and then, each with
// how many there were meanwhile. The pause between them doubles.
const (
	steadyFirst = time.Minute
	steadyMost  = 16 * time.Minute
	steadyKeys  = 1024 // different lines that are watched at once; further ones are written as they come
	steadyLook  = time.Second
)

// steadySubjects tell one line from another beside its level and text: whose it
// is. What is not named here may be different each time.
var steadySubjects = []string{"carrier", "link", "lane", "company_id", "user_id", "host", "listener", "kind", "reason", "fault", "warning", "key", "result", "command"}

// steadyIDs are what a line about one message bears, or one that has been counted
// where it was made: such a one is always written.
var steadyIDs = []string{"id", "message_id", "webhook_id", "delivery", "stack", "count"}

// steadyErrors is how many different errors of one link are told at once.
const steadyErrors = 4

// steady is a handler that writes each warning and error once, and then once in
// a while with the count of those that were the same: the same text, level and
// subject. Everything else passes as it comes, and a line at level info about the
// same subject ends what went on: the next one is a beginning.
type steady struct {
	inner   slog.Handler
	subject string // of what With gave
	link    bool
	err     string
	always  bool
	shared  *steadyLines
}

// steadyLines are the lines that were written of late.
type steadyLines struct {
	now func() time.Time

	mu    sync.Mutex
	lines map[string]*steadyLine
}

type steadyLine struct {
	subject string
	handler slog.Handler
	last    slog.Record // the latest that was not written
	errors  []string    // that were written
	count   int         // that were not written
	pause   time.Duration
	next    time.Time // when the count is told
}

func newSteady(inner slog.Handler) *steady {
	return &steady{inner: inner, shared: &steadyLines{now: time.Now, lines: make(map[string]*steadyLine)}}
}

func (s *steady) Enabled(ctx context.Context, level slog.Level) bool {
	return s.inner.Enabled(ctx, level)
}

func (s *steady) WithAttrs(attrs []slog.Attr) slog.Handler {
	other := *s
	other.inner = s.inner.WithAttrs(attrs)
	for _, a := range attrs {
		other.note(a)
	}
	return &other
}

func (s *steady) WithGroup(name string) slog.Handler {
	other := *s
	other.inner = s.inner.WithGroup(name)
	return &other
}

func (s *steady) note(a slog.Attr) {
	if slices.Contains(steadySubjects, a.Key) {
		s.subject += "\x00" + a.Key + "\x00" + a.Value.String()
	}
	s.always = s.always || slices.Contains(steadyIDs, a.Key)
	s.link = s.link || a.Key == "link"
	if a.Key == "error" {
		s.err = digits.ReplaceAllString(a.Value.String(), "")
	}
}

var digits = regexp.MustCompile(`[0-9]+`)

func (s *steady) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelInfo {
		return s.inner.Handle(ctx, r)
	}
	whose := *s
	r.Attrs(func(a slog.Attr) bool { whose.note(a); return true })
	if r.Level < slog.LevelWarn {
		if r.Level == slog.LevelInfo && !whose.always {
			s.shared.tell(func(line *steadyLine) bool { return line.subject == whose.subject })
		}
		return s.inner.Handle(ctx, r)
	}
	if !whose.link { // another reason why a link is down is another thing to do; a store's outage has many
		whose.err = ""
	}
	if whose.always || s.shared.first(&whose, r) {
		return s.inner.Handle(ctx, r)
	}
	return nil
}

// first tells whether a line is to be written now; else it is counted.
func (l *steadyLines) first(s *steady, r slog.Record) bool {
	key := r.Level.String() + "\x00" + r.Message + s.subject
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.lines[key]
	switch {
	case line != nil && len(line.errors) < steadyErrors && !slices.Contains(line.errors, s.err):
		line.errors = append(line.errors, s.err)
	case line != nil:
		line.handler, line.last = s.inner, r.Clone()
		line.count++
		return false
	case len(l.lines) < steadyKeys:
		l.lines[key] = &steadyLine{subject: s.subject, errors: []string{s.err}, pause: steadyFirst, next: l.now().Add(steadyFirst)}
	}
	return true
}

// Run tells the counts when their time has come, until ctx ends, and then what
// is left.
func (l *steadyLines) Run(ctx context.Context) error {
	tick := time.NewTicker(steadyLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			l.tell(func(*steadyLine) bool { return true })
			return nil
		case <-tick.C:
			l.tell(nil)
		}
	}
}

// tell writes the counts whose time has come, and those of the lines that have
// ended, which are forgotten.
func (l *steadyLines) tell(ended func(*steadyLine) bool) {
	type due struct {
		handler slog.Handler
		record  slog.Record
	}
	var list []due
	l.mu.Lock()
	now := l.now()
	for key, line := range l.lines {
		switch {
		case ended != nil && !ended(line), ended == nil && now.Before(line.next):
			continue
		case ended != nil || line.count == 0:
			delete(l.lines, key)
		}
		if line.count > 0 {
			line.last.AddAttrs(slog.Int("count", line.count), slog.String("within", now.Sub(line.next.Add(-line.pause)).Round(time.Second).String()))
			list = append(list, due{line.handler, line.last})
			line.count, line.pause = 0, min(2*line.pause, steadyMost)
			line.next = now.Add(line.pause)
		}
	}
	l.mu.Unlock()
	slices.SortFunc(list, func(a, b due) int { return a.record.Time.Compare(b.record.Time) })
	for _, d := range list {
		_ = d.handler.Handle(context.Background(), d.record) // there is nobody to tell
	}
}

// plainJSON passes JSON on and escapes in it what encoding/json leaves as it is
// and a terminal obeys; the values stay the same. Each Write is of whole values.
type plainJSON struct{ io.Writer }

func (p plainJSON) Write(text []byte) (int, error) {
	var b []byte // as text, once something in it had to change
	for i := 0; i < len(text); {
		r, width := rune(text[i]), 1
		if r >= 0x7F {
			r, width = utf8.DecodeRune(text[i:])
		}
		// Below 0x20 stand only the line ends and tabs between values: within
		// them encoding/json has escaped all.
		if r >= 0x7F && sms.IsControl(r) {
			if b == nil {
				b = append(make([]byte, 0, len(text)+64), text[:i]...)
			}
			b = fmt.Appendf(b, `\u%04x`, r)
		} else if b != nil {
			b = append(b, text[i:i+width]...)
		}
		i += width
	}
	if b == nil {
		return p.Writer.Write(text)
	}
	if _, err := p.Writer.Write(b); err != nil {
		return 0, err
	}
	return len(text), nil
}

// lines is an error as it may stand on a terminal; its lines stay lines.
func lines(err error) string {
	parts := strings.Split(err.Error(), "\n")
	for i := range parts {
		parts[i] = sms.Printable(parts[i])
	}
	return strings.Join(parts, "\n")
}

// redisLog is where go-redis tells its troubles, which it would else print by
// itself: into the log of the process that serves, and nowhere in a command's,
// whose errors say the same.
var redisLog redisLines

type redisLines struct{ to atomic.Pointer[slog.Logger] }

func init() { redis.SetLogger(&redisLog) } // once, before anybody uses it

// Printf is a line of go-redis.
func (r *redisLines) Printf(ctx context.Context, format string, v ...any) {
	if log := r.to.Load(); log != nil {
		log.WarnContext(ctx, "redis: connection error", "error", fmt.Sprintf(format, v...))
	}
}
