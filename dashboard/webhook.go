package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/acts"
	"intumwa/internal/postgres"
	"intumwa/sms"
	"intumwa/webhooks"
)

// How changes of an endpoint are called in the record of acts.
const (
	actWebhookSet     = "webhook.set"
	actWebhookRotate  = "webhook.rotate"
	actWebhookRotated = "webhook.rotation_end"
)

// webhookPart is the endpoint on the page of the sender IDs.
type webhookPart struct {
	Endpoint *webhooks.Endpoint // nil: none yet; without its secret
	Secret   string             // a new one, this once
	Test     *trial             // the latest, this once
	Events   []option
}

// trial is a test event and what came of it.
type trial struct {
	webhooks.TestResult

	Call attempt
}

// shownOnce is what a page hands to the one after it.
type shownOnce struct {
	Secret string               `json:"secret,omitempty"`
	Test   *webhooks.TestResult `json:"test,omitempty"`
}

func (v *visit) showOnce(p *webhookPart, kept string) {
	var once shownOnce
	if kept == "" || json.Unmarshal([]byte(kept), &once) != nil {
		return
	}
	p.Secret = once.Secret
	if once.Test != nil {
		p.Test = &trial{*once.Test, v.newAttempt(once.Test.Attempt)}
	}
}

func (o shownOnce) text() string {
	text, _ := json.Marshal(o) //nolint:gosec // sealed until the next page takes it; of texts and numbers, so that it never fails
	return string(text)
}

func (v *visit) webhookPart(t tenant) (p webhookPart, err error) {
	p.Events = []option{{webhooks.Sent, webhooks.Sent}, {webhooks.Failed, webhooks.Failed}}
	e, err := v.d.rooms.Webhooks.EndpointOf(v.ctx(), t.company())
	if errors.Is(err, webhooks.ErrNotFound) {
		return p, nil
	}
	p.Endpoint = &e
	return p, err
}

// changeWebhook lets work change the endpoint and records the act with it.
func (v *visit) changeWebhook(t tenant, act string, work func(tx pgx.Tx, hooks *webhooks.Webhooks) (before, after any, err error)) error {
	d := v.d
	err := postgres.Retry(v.ctx(), func() error {
		return pgx.BeginTxFunc(v.ctx(), d.rooms.Pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
			before, after, err := work(tx, d.rooms.Webhooks.In(tx))
			if err != nil {
				return err
			}
			return acts.Record(v.ctx(), tx, acts.Entry{Actor: acts.User(t.User.ID), Act: act, Subject: "webhook of company " + t.company().String(),
				Company: t.company(), Before: before, After: after})
		})
	})
	if err == nil {
		d.rooms.Webhooks.Kick()
	}
	return err
}

// setWebhook is POST /webhook: where events go.
func (d *Dashboard) setWebhook(v *visit, t tenant) {
	f := v.form()
	if f == nil {
		return
	}
	address := strings.TrimSpace(f.required("url"))
	if f.ok() {
		made, err := v.setEndpoint(t, webhooks.Setting{URL: address})
		var refusal sms.Refusal
		switch {
		case err == nil && made: // the secret is the news
			v.redirect("/senders#webhook", "")
			return
		case err == nil:
			v.redirect("/senders#webhook", "flash.webhook")
			return
		case errors.As(err, &refusal):
			f.refuse("url", whyNot(refusal.Reason))
		default:
			v.fail("setting a webhook endpoint", err)
			return
		}
	}
	if data, ok := v.sendersPage(t); ok {
		v.again("senders", data, f)
	}
}

// whyNot is the text for the reason for which a URL is refused.
func whyNot(reason string) string {
	texts := map[string]string{webhooks.BadScheme: "webhook.bad.scheme", webhooks.BadUser: "webhook.bad.user", webhooks.BadFragment: "webhook.bad.fragment",
		webhooks.BadHost: "webhook.bad.host", webhooks.BadAddress: "webhook.bad.address", webhooks.BadPort: "webhook.bad.port"}
	if key, ok := texts[reason]; ok {
		return key
	}
	return "webhook.bad.url"
}

// setEndpoint changes the endpoint; made says that it is new, and its secret kept for the next page.
func (v *visit) setEndpoint(t tenant, s webhooks.Setting) (made bool, err error) {
	state := func(e webhooks.Endpoint) map[string]any {
		return map[string]any{"url": webhooks.RecordedURL(e.URL), "active": e.Active}
	}
	err = v.changeWebhook(t, actWebhookSet, func(tx pgx.Tx, hooks *webhooks.Webhooks) (before, after any, err error) {
		was, err := hooks.EndpointOf(v.ctx(), t.company())
		switch {
		case err == nil:
			before = state(was)
		case !errors.Is(err, webhooks.ErrNotFound):
			return nil, nil, err
		}
		e, err := hooks.SetEndpoint(v.ctx(), int64(t.company()), s)
		if made = e.Made; err == nil && made {
			err = v.keepOnceIn(tx, "webhook", shownOnce{Secret: e.Secret}.text())
		}
		return before, state(e), err
	})
	return made, err
}

// switchWebhook is POST /webhook/active.
func (d *Dashboard) switchWebhook(v *visit, t tenant) {
	f := v.form()
	if f == nil {
		return
	}
	if _, err := d.rooms.Webhooks.EndpointOf(v.ctx(), t.company()); err != nil { // a setting without a URL would be refused in other words
		v.fail("reading a webhook endpoint", err)
		return
	}
	on, flash := f.Value("on") == "yes", "flash.webhook.off"
	if on {
		flash = "flash.webhook.on"
	}
	if _, err := v.setEndpoint(t, webhooks.Setting{Active: &on}); err != nil {
		v.fail("switching a webhook endpoint", err)
		return
	}
	v.redirect("/senders#webhook", flash)
}

// rotateSecret is POST /webhook/rotate.
func (d *Dashboard) rotateSecret(v *visit, t tenant) {
	err := v.changeWebhook(t, actWebhookRotate, func(tx pgx.Tx, hooks *webhooks.Webhooks) (before, after any, err error) {
		e, err := hooks.Rotate(v.ctx(), t.company())
		if err == nil {
			err = v.keepOnceIn(tx, "webhook", shownOnce{Secret: e.Secret}.text())
		}
		return nil, map[string]any{"previous_until": e.PreviousUntil}, err
	})
	var refusal sms.Refusal
	switch {
	case errors.As(err, &refusal): // a second click: the page says what is under way
		v.redirect("/senders#webhook", "")
	case err != nil:
		v.fail("rotating a webhook secret", err)
	default:
		v.redirect("/senders#webhook", "")
	}
}

// endRotation is POST /webhook/rotate/end.
func (d *Dashboard) endRotation(v *visit, t tenant) {
	err := v.changeWebhook(t, actWebhookRotated, func(_ pgx.Tx, hooks *webhooks.Webhooks) (before, after any, err error) {
		was, err := hooks.EndpointOf(v.ctx(), t.company())
		if err != nil {
			return nil, nil, err
		}
		e, err := hooks.EndRotation(v.ctx(), t.company())
		return map[string]any{"previous_until": was.PreviousUntil}, map[string]any{"previous_until": e.PreviousUntil}, err
	})
	if err != nil {
		v.fail("ending the rotation of a webhook secret", err)
		return
	}
	v.redirect("/senders#webhook", "flash.rotated")
}

// testWebhook is POST /webhook/test: an event that means nothing, and what the endpoint answers.
func (d *Dashboard) testWebhook(v *visit, t tenant) {
	f := v.form()
	if f == nil {
		return
	}
	event := webhooks.Sent
	if f.Value("event") == webhooks.Failed {
		event = webhooks.Failed
	}
	refuse := func(status int, key string) {
		if data, ok := v.sendersPage(t); ok {
			f.notice(key)
			v.show(status, "senders", data, f)
		}
	}
	if tests := d.rooms.Tries.Tests; tests != nil && !tests.Allow(v.ctx(), int64(t.company())).Allowed {
		refuse(http.StatusTooManyRequests, "webhook.test.many")
		return
	}
	ctx, cancel := context.WithTimeout(v.ctx(), requestTimeout-2*time.Second) // what is left is for the page
	defer cancel()
	result, err := d.rooms.Webhooks.Test(ctx, t.company(), event)
	switch {
	case errors.Is(err, webhooks.ErrBusy):
		refuse(http.StatusTooManyRequests, "webhook.test.busy")
		return
	case err == nil:
		err = v.keepOnce("webhook", shownOnce{Test: &result}.text())
	}
	if err != nil {
		v.fail("testing a webhook endpoint", err)
		return
	}
	v.redirect("/senders#webhook", "")
}

// attempt is one call as pages show it.
type attempt struct {
	webhooks.Attempt

	Good  bool
	Badge string // HTTP 200, or what happened instead
	Said  string // the beginning of the answer, made printable
}

// newAttempt says in the visitor's language what came of a call.
func (v *visit) newAttempt(a webhooks.Attempt) attempt {
	shown := attempt{Attempt: a, Good: a.Status/100 == 2, Said: printable(a.Excerpt)}
	if a.Status != 0 {
		shown.Badge = "HTTP " + strconv.Itoa(a.Status)
		if a.Status/100 == 3 {
			shown.Error = v.lang.T("attempt.redirect")
		}
		return shown
	}
	texts := map[string][2]string{
		"timeout": {"attempt.timeout", "attempt.timeout.text"}, "dns": {"attempt.dns", "attempt.dns.text"}, "tls": {"attempt.tls", "attempt.tls.text"},
		"blocked": {"attempt.blocked", "attempt.blocked.text"}, "refused": {"attempt.refused", "attempt.refused.text"},
	}
	keys, known := texts[a.Result]
	if !known {
		keys = [2]string{"attempt.other", "attempt.other.text"}
	}
	shown.Badge, shown.Error = v.lang.T(keys[0]), v.lang.T(keys[1])
	if a.Result == "tls" {
		shown.Said = printable(a.Error) // what is wrong with the certificate
	}
	return shown
}

// printable is a stranger's text fit for a page, with its lines.
func printable(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = webhooks.Attempt{Excerpt: line}.Answer()
	}
	return strings.Join(lines, "\n")
}
