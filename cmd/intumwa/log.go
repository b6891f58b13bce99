package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
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

const (
	repeatEvery = time.Minute // between two lines of one failure
	repeatKeys  = 1024        // failures tracked at once
)

// subjectKeys are the attributes that, with level and text, identify a failure. Other
// attributes may vary.
var subjectKeys = []string{"carrier", "link", "lane", "company_id", "user_id", "host", "listener", "kind", "reason",
	"fault", "warning", "key", "result", "command", "task", "path", "page", "name"}

// messageKeys are attributes of lines about one message, or with a count of their own. Such
// lines are always written.
var messageKeys = []string{"id", "message_id", "webhook_id", "delivery", "stack", "count"}

// repeats is a handler that writes a repeated warning or error at most once a minute: the
// same level, text and subject, and for a link the same error. The next line counts those
// left out. An info line about the subject ends the failure.
type repeats struct {
	slog.Handler
	attrs []slog.Attr // from With
	seen  *failures
}

// failures are the recent ones.
type failures struct {
	now func() time.Time

	mu    sync.Mutex
	byKey map[string]*failure
}

type failure struct {
	subject string
	written time.Time
	omitted int
}

func newRepeats(inner slog.Handler) *repeats {
	return &repeats{Handler: inner, seen: &failures{now: time.Now, byKey: make(map[string]*failure)}}
}

// WithAttrs also adds the attributes to the subject.
func (r *repeats) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &repeats{Handler: r.Handler.WithAttrs(attrs), attrs: slices.Concat(r.attrs, attrs), seen: r.seen}
}

// WithGroup keeps the subject.
func (r *repeats) WithGroup(name string) slog.Handler {
	return &repeats{Handler: r.Handler.WithGroup(name), attrs: r.attrs, seen: r.seen}
}

var digits = regexp.MustCompile(`[0-9]+`)

// Handle writes the line unless it repeats another.
func (r *repeats) Handle(ctx context.Context, line slog.Record) error {
	if line.Level < slog.LevelInfo {
		return r.Handler.Handle(ctx, line)
	}
	attrs := r.attrs
	line.Attrs(func(a slog.Attr) bool { attrs = append(attrs[:len(attrs):len(attrs)], a); return true })
	var subject, problem string
	var message, link bool
	for _, a := range attrs {
		if slices.Contains(subjectKeys, a.Key) {
			subject += "\x00" + a.Key + "\x00" + a.Value.String()
		}
		message = message || slices.Contains(messageKeys, a.Key)
		link = link || a.Key == "link"
		if a.Key == "error" {
			problem = digits.ReplaceAllString(a.Value.String(), "")
		}
	}
	switch {
	case message:
	case line.Level < slog.LevelWarn:
		if subject != "" {
			r.seen.end(subject)
		}
	default:
		key := line.Level.String() + "\x00" + line.Message + subject
		if link { // a link that is down for another reason needs another action; a store's outage has many errors
			key += "\x00" + problem
		}
		omitted, due := r.seen.due(key, subject)
		if !due {
			return nil
		}
		if omitted > 0 {
			line.AddAttrs(slog.Int("count", omitted))
		}
	}
	return r.Handler.Handle(ctx, line)
}

// due reports whether to write a failure's line, and how many were omitted before it.
func (f *failures) due(key, subject string) (omitted int, due bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	at := f.byKey[key]
	if at == nil {
		if len(f.byKey) >= repeatKeys {
			clear(f.byKey)
		}
		at = &failure{subject: subject}
		f.byKey[key] = at
	} else if now.Sub(at.written) < repeatEvery {
		at.omitted++
		return 0, false
	}
	omitted, at.written, at.omitted = at.omitted, now, 0
	return omitted, true
}

// end removes the failures of a subject.
func (f *failures) end(subject string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.byKey, func(_ string, at *failure) bool { return at.subject == subject })
}

// plainJSON escapes control characters that encoding/json leaves and a terminal obeys.
// The values do not change. Each Write holds whole values.
type plainJSON struct{ io.Writer }

func (p plainJSON) Write(text []byte) (int, error) {
	var b []byte // set after the first change
	for i := 0; i < len(text); {
		r, width := rune(text[i]), 1
		if r >= 0x7F {
			r, width = utf8.DecodeRune(text[i:])
		}
		// Below 0x20 only line ends and tabs between values remain: encoding/json escapes
		// them within values.
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

// lines escapes an error for a terminal and keeps its line breaks.
func lines(err error) string {
	parts := strings.Split(err.Error(), "\n")
	for i := range parts {
		parts[i] = sms.Printable(parts[i])
	}
	return strings.Join(parts, "\n")
}

// redisLog receives go-redis's own log. A serving process logs it; a command drops it,
// because its errors already include it.
var redisLog redisLines

type redisLines struct{ to atomic.Pointer[slog.Logger] }

func init() { redis.SetLogger(&redisLog) } // once, before first use

// Printf implements go-redis's logging interface.
func (r *redisLines) Printf(ctx context.Context, format string, v ...any) {
	if log := r.to.Load(); log != nil {
		log.WarnContext(ctx, "redis: connection error", "event", "redis_connection_failed", "error",
			fmt.Sprintf(format, v...))
	}
}
