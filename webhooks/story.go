package webhooks

import "log/slog"

// logAttempt logs an attempt: at debug level each, at warning one after which the
// delivery is given up. The message's ULID is looked up for lines that are
// written only.
func (w *worker) logAttempt(company int64, t *target, c claimed, r result) {
	level, what := slog.LevelDebug, "webhook attempt"
	if r.state == exhausted {
		level, what = slog.LevelWarn, "webhook delivery given up"
	}
	if r.attempt.Result != "2xx" { // whose it is, from the first failure on; those of one endpoint are one line to the log
		w.log.Warn("calls to an endpoint fail; they are tried again", "company_id", company, "host", t.url.Hostname(), "result", r.attempt.Result)
	}
	if !w.log.Enabled(w.calling, level) {
		return
	}
	fields := []any{"message_id", messageOf(c.id), "webhook_id", webhookID(c.id), "company_id", company, "event", eventOf(c.id),
		"host", t.url.Hostname(), "attempt", c.tries + 1, "result", r.attempt.Result}
	if w.opts.Name != nil {
		if name := w.opts.Name(w.calling, messageOf(c.id)); name != "" {
			fields = append([]any{"id", name}, fields...)
		}
	}
	w.log.Log(w.calling, level, what, fields...)
}
