package webhooks

import "log/slog"

// logAttempt logs an attempt: at debug level each, at warning one after which the
// delivery is given up. The message's ULID is looked up for lines that are
// written only.
func (d *deliverer) logAttempt(company int64, t *target, r result) {
	level, what := slog.LevelDebug, "webhook attempt"
	if r.state == exhausted {
		level, what = slog.LevelWarn, "webhook delivery given up"
	}
	if r.attempt.Result != "2xx" { // whose it is, from the first failure on; those of one endpoint are one line to the log
		d.log.Warn("webhook calls to an endpoint fail; they are tried again", "company_id", company, "host", t.host, "result", r.attempt.Result)
	}
	if !d.log.Enabled(d.calling, level) {
		return
	}
	fields := []any{"message_id", messageOf(r.id), "webhook_id", webhookID(r.id), "company_id", company, "event", eventName(r.id),
		"host", t.host, "attempt", r.tries + 1, "result", r.attempt.Result}
	if d.opts.Name != nil {
		if name := d.opts.Name(d.calling, messageOf(r.id)); name != "" {
			fields = append([]any{"id", name}, fields...)
		}
	}
	d.log.Log(d.calling, level, what, fields...)
}
