package develop

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/dashboard/web"
	"intumwa/sms"
	"intumwa/webhooks"
)

// webhookSettings is the endpoint's part of the webhooks page.
type webhookSettings struct {
	onceContent

	Endpoint *webhooks.Endpoint // nil: none yet; without its secret
	Events   []web.Option
	Optional []optionalEvent

	Pulling webhooks.Pulling
	Pulled  []optionalEvent // that programs fetch only if it is on
}

// optionalEvent is an event that an endpoint can receive.
type optionalEvent struct {
	Name, Text string
	On         bool
}

// onceContent is what KeepOnce passes from a page to the next, which shows it once.
type onceContent struct {
	Secret string               `json:"secret,omitempty"` // a new one
	Test   *webhooks.TestResult `json:"test,omitempty"`   // the latest
}

func (o onceContent) text() string {
	text, _ := json.Marshal(o) //nolint:gosec // encrypted until the next page reads it; texts and numbers always marshal
	return string(text)
}

// webhookSettings returns an endpoint's settings, with the last change's content that is shown once.
func (ps *Pages) webhookSettings(v *web.Visit, t web.Tenant, e *webhooks.Endpoint) (*webhookSettings, error) {
	kept, err := v.TakeOnce("webhook")
	if err != nil {
		return nil, err
	}
	s := &webhookSettings{Endpoint: e, Events: eventOptions()}
	for texts := json.NewDecoder(strings.NewReader(kept)); texts.More(); { // a secret, and a test
		if err := texts.Decode(&s.onceContent); err != nil {
			return nil, err
		}
	}
	if e != nil {
		for _, name := range webhooks.Askable() {
			s.Optional = append(s.Optional, optionalEvent{name, optionalTexts[name], slices.Contains(e.Events, name)})
		}
	}
	if s.Pulling, err = ps.Deps.Webhooks.PullingOf(v.Ctx(), t.CompanyID()); err != nil {
		return nil, err
	}
	for _, name := range webhooks.Pullable() {
		s.Pulled = append(s.Pulled, optionalEvent{name, optionalTexts[name], slices.Contains(s.Pulling.Events, name)})
	}
	return s, nil
}

// Endpoint returns the company's endpoint, or nil.
func (ps *Pages) Endpoint(v *web.Visit, t web.Tenant) (*webhooks.Endpoint, error) {
	e, err := ps.Deps.Webhooks.EndpointOf(v.Ctx(), t.CompanyID())
	if errors.Is(err, webhooks.ErrNotFound) {
		return nil, nil
	}
	return &e, err
}

// optionalTexts maps the optional events to the keys of their texts.
var optionalTexts = map[string]string{webhooks.Received: "webhook.event.received",
	webhooks.LowBalance:    "webhook.event.low",
	webhooks.BatchFinished: "webhook.event.batch", webhooks.VerificationFinished: "webhook.event.verification"}

// eventOptions are all events, under their names.
func eventOptions() (all []web.Option) {
	for _, name := range append([]string{webhooks.Sent, webhooks.Failed}, webhooks.Askable()...) {
		all = append(all, web.Option{Value: name, Text: name})
	}
	return all
}

// keepSecret stores an endpoint's new secret for the next page.
func keepSecret(v *web.Visit) func(tx pgx.Tx, secret string) error {
	return func(tx pgx.Tx, secret string) error {
		return v.KeepSecret(tx, "webhook secret", onceContent{Secret: secret}.text())
	}
}

// SetWebhook is POST /webhook: it sets the URL.
func (ps *Pages) SetWebhook(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	address := strings.TrimSpace(f.Required("url"))
	if !f.OK() {
		return ps.Deliveries(v, t)
	}
	e, err := ps.setEndpoint(v, t, webhooks.Setting{URL: address})
	refusal, refused := errors.AsType[sms.Refusal](err)
	switch {
	case refused:
		f.Refuse("url", urlRefusalText(refusal.Reason))
		return ps.Deliveries(v, t)
	case err != nil:
		return err
	case e.Made: // the next page shows the new secret
		return v.Redirect("/deliveries", "")
	}
	return v.Redirect("/deliveries", "flash.webhook")
}

// urlRefusalText returns the key of the text for a refused URL.
func urlRefusalText(reason string) string {
	texts := map[string]string{webhooks.BadScheme: "webhook.bad.scheme", webhooks.BadUser: "webhook.bad.user",
		webhooks.BadFragment: "webhook.bad.fragment",
		webhooks.BadHost:     "webhook.bad.host", webhooks.BadAddress: "webhook.bad.address",
		webhooks.BadPort: "webhook.bad.port"}
	if key, ok := texts[reason]; ok {
		return key
	}
	return "webhook.bad.url"
}

func (ps *Pages) setEndpoint(v *web.Visit, t web.Tenant, to webhooks.Setting) (webhooks.Endpoint, error) {
	return ps.By(v).SetEndpoint(v.Ctx(), t.CompanyID(), to, keepSecret(v))
}

// SwitchWebhook is POST /webhook/active.
func (ps *Pages) SwitchWebhook(v *web.Visit, t web.Tenant) error {
	if _, err := ps.Deps.Webhooks.EndpointOf(v.Ctx(), t.CompanyID()); err != nil {
		// a missing endpoint would otherwise be refused for its missing URL
		return err
	}
	on, flash := v.Form().Value("on") == "yes", "flash.webhook.off"
	if on {
		flash = "flash.webhook.on"
	}
	_, err := ps.setEndpoint(v, t, webhooks.Setting{Active: &on})
	return v.Done(err, "/deliveries", flash)
}

// SetEvent is POST /webhook/events: it turns an event of the endpoint on or off.
func (ps *Pages) SetEvent(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	name := f.Value("event")
	e, err := ps.Deps.Webhooks.EndpointOf(v.Ctx(), t.CompanyID())
	if err == nil && !slices.Contains(webhooks.Askable(), name) {
		err = web.ErrNotFound
	}
	if err != nil {
		return err
	}
	events := slices.DeleteFunc(slices.Clone(e.Events), func(each string) bool { return each == name })
	if f.Value("on") == "yes" {
		events = append(events, name)
	}
	_, err = ps.setEndpoint(v, t, webhooks.Setting{Events: &events})
	return v.Done(err, "/deliveries", "flash.webhook")
}

// SetPulled is POST /webhook/pulled: it turns an event on or off for programs that fetch events.
func (ps *Pages) SetPulled(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	name := f.Value("event")
	p, err := ps.Deps.Webhooks.PullingOf(v.Ctx(), t.CompanyID())
	if err == nil && !slices.Contains(webhooks.Pullable(), name) {
		err = web.ErrNotFound
	}
	if err != nil {
		return err
	}
	events := slices.DeleteFunc(slices.Clone(p.Events), func(each string) bool { return each == name })
	if f.Value("on") == "yes" {
		events = append(events, name)
	}
	_, err = ps.By(v).SetPulled(v.Ctx(), t.CompanyID(), events)
	return v.Done(err, "/deliveries#pull", "flash.webhook.pulled")
}

// RotateSecret is POST /webhook/rotate.
func (ps *Pages) RotateSecret(v *web.Visit, t web.Tenant) error {
	_, err := ps.By(v).RotateSecret(v.Ctx(), t.CompanyID(), keepSecret(v))
	if _, refused := errors.AsType[sms.Refusal](err); err != nil && !refused {
		// a second click: the page shows the rotation under way
		return err
	}
	return v.Redirect("/deliveries", "")
}

// EndRotation is POST /webhook/rotate/end.
func (ps *Pages) EndRotation(v *web.Visit, t web.Tenant) error {
	_, err := ps.By(v).EndRotation(v.Ctx(), t.CompanyID())
	return v.Done(err, "/deliveries", "flash.rotated")
}

// TestWebhook is POST /webhook/test: it sends a test event and shows the endpoint's response.
func (ps *Pages) TestWebhook(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	event := webhooks.Sent
	if name := f.Value("test"); web.Among(eventOptions(), name) {
		event = name
	}
	if tests := ps.Tests; tests != nil && !tests.Allow(v.Ctx(), int64(t.CompanyID())).Allowed {
		f.Deny(http.StatusTooManyRequests, "webhook.test.many")
		return ps.Deliveries(v, t)
	}
	v.Leave()                                                                     // the endpoint may be slow
	ctx, cancel := context.WithTimeout(v.Ctx(), web.RequestTimeout-2*time.Second) // the rest is for rendering the page
	defer cancel()
	result, err := ps.Deps.Webhooks.Test(ctx, t.CompanyID(), event)
	if errors.Is(err, webhooks.ErrBusy) {
		f.Deny(http.StatusTooManyRequests, "webhook.test.busy")
		return ps.Deliveries(v, t)
	}
	if err == nil {
		err = v.KeepOnce("webhook test", onceContent{Test: &result}.text())
	}
	return v.Done(err, "/deliveries#test", "")
}

// attempt is one call as shown on pages.
type attempt struct {
	webhooks.Attempt

	Good   bool
	Badge  string // HTTP 200, or the failure
	Answer string // beginning of the response, made printable
}

// attemptOf returns a call and its result in the user's language.
func attemptOf(p *web.View, a webhooks.Attempt) attempt {
	shown := attempt{Attempt: a, Good: a.Status/100 == 2, Answer: printable(a.Excerpt)}
	if a.Status != 0 {
		shown.Badge = "HTTP " + strconv.Itoa(a.Status)
		if a.Status/100 == 3 {
			shown.Error = p.T("attempt.redirect")
		}
		return shown
	}
	texts := map[string][2]string{
		"timeout": {"attempt.timeout", "attempt.timeout.text"}, "dns": {"attempt.dns", "attempt.dns.text"},
		"tls":     {"attempt.tls", "attempt.tls.text"},
		"blocked": {"attempt.blocked", "attempt.blocked.text"}, "refused": {"attempt.refused", "attempt.refused.text"},
	}
	keys, known := texts[a.Result]
	if !known {
		keys = [2]string{"attempt.other", "attempt.other.text"}
	}
	shown.Badge, shown.Error = p.T(keys[0]), p.T(keys[1])
	if a.Result == "tls" {
		shown.Answer = printable(a.Error) // the certificate's problem
	}
	return shown
}

// lastOf returns the latest call, or nil.
func lastOf(p *web.View, all []webhooks.Attempt) *attempt {
	if len(all) == 0 {
		return nil
	}
	last := attemptOf(p, all[len(all)-1])
	return &last
}

// printable returns text from outside, safe for a page, with its line breaks.
func printable(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = webhooks.Attempt{Excerpt: line}.Answer()
	}
	return strings.Join(lines, "\n")
}
