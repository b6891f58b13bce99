package operations

import (
	"context"
	"errors"
	"time"

	"intumwa/accounts/letter"
	"intumwa/sms"
	"intumwa/webhooks"
)

func onWebhook(name string, company sms.CompanyID, before, after any) act {
	return act{name: name, subject: "webhook of company " + company.String(), company: int64(company), before: before,
		after: after}
}

// SetEndpoint creates or changes a company's endpoint. keep gets the secret of a new one. The owner gets a letter about
// another URL or another secret.
func (a Actor) SetEndpoint(ctx context.Context, company sms.CompanyID, to webhooks.Setting, keep Keep) (
	is webhooks.Endpoint, err error) {
	err = a.do(ctx, reads, func(in within) (act, error) {
		done := onWebhook("webhook.set", company, nil, nil)
		state := func(e webhooks.Endpoint, given bool) any {
			return fields{"url": webhooks.RecordedURL(e.URL), "active": e.Active, "events": e.Events, "secret_given": given}
		}
		was, err := in.hooks.EndpointOf(ctx, company)
		switch {
		case err == nil:
			done.before = state(was, false)
			done.hidden = to.URL != "" && to.URL != was.URL // the parts that may hold a secret
		case !errors.Is(err, webhooks.ErrNotFound):
			return done, err
		}
		if is, err = in.hooks.SetEndpoint(ctx, int64(company), to); err != nil {
			return done, err
		}
		if is.Made {
			err = keep.keep(in.Tx, is.Secret)
		}
		if given := to.Secret != "" && was.URL != ""; err == nil && (given || is.URL != was.URL) {
			err = letter.Write(ctx, in.Tx, letter.Endpoint, company, letter.EndpointValues{URL: webhooks.RecordedURL(is.URL),
				Given: given})
		}
		done.after = state(is, to.Secret != "")
		return done, err
	})
	return is, err
}

// SetPulled sets which events, of those that have to be requested, a company's programs fetch besides all others.
func (a Actor) SetPulled(ctx context.Context, company sms.CompanyID, events []string) (is webhooks.Pulling, err error) {
	err = a.do(ctx, reads, func(in within) (act, error) {
		was, err := in.hooks.PullingOf(ctx, company)
		if err == nil {
			err = in.hooks.SetPulled(ctx, company, events)
		}
		if err == nil {
			is, err = in.hooks.PullingOf(ctx, company)
		}
		return onWebhook("webhook.pulled", company, fields{"events": was.Events}, fields{"events": is.Events}), err
	})
	return is, err
}

// RotateSecret gives a company's endpoint a new secret, which keep gets. The owner gets a letter.
func (a Actor) RotateSecret(ctx context.Context, company sms.CompanyID, keep Keep) (is webhooks.Endpoint, err error) {
	err = a.do(ctx, reads, func(in within) (act, error) {
		if is, err = in.hooks.Rotate(ctx, company); err == nil {
			err = keep.keep(in.Tx, is.Secret)
		}
		if err == nil {
			err = letter.Write(ctx, in.Tx, letter.Endpoint, company, letter.EndpointValues{URL: webhooks.RecordedURL(is.URL),
				Rotated: true})
		}
		return onWebhook("webhook.rotate", company, nil, fields{"previous_until": is.PreviousUntil}), err
	})
	return is, err
}

// EndRotation ends a rotation: the earlier secret signs no more.
func (a Actor) EndRotation(ctx context.Context, company sms.CompanyID) (is webhooks.Endpoint, err error) {
	err = a.do(ctx, reads, func(in within) (act, error) {
		was, err := in.hooks.EndpointOf(ctx, company)
		if err == nil {
			is, err = in.hooks.EndRotation(ctx, company)
		}
		return onWebhook("webhook.rotation_end", company, fields{"previous_until": was.PreviousUntil},
			fields{"previous_until": is.PreviousUntil}), err
	})
	return is, err
}

// Resend sends a delivery again. company 0 is any company.
func (a Actor) Resend(ctx context.Context, company sms.CompanyID, id int64) error {
	return a.do(ctx, locks, func(in within) (done act, err error) {
		if company == 0 {
			if company, err = in.hooks.CompanyOf(ctx, id); err != nil {
				return done, err
			}
		}
		was, err := in.hooks.Delivery(ctx, company, id)
		if err != nil {
			return done, err
		}
		is, err := in.hooks.Resend(ctx, company, id)
		return act{name: "webhook.resend", subject: "delivery " + was.WebhookID, company: int64(company),
			// a pending one is brought forward
			before: fields{"state": was.State}, after: fields{"state": is.State}, hidden: true}, err
	})
}

// recoverReserve is the time that a part of a recovery may take, and showing its result.
const recoverReserve = 6 * time.Second

// Recover sends again the deliveries that were given up of a company's events since a time, in parts. When ctx ends
// soon, it stops, and left is how many are left.
func (a Actor) Recover(ctx context.Context, company sms.CompanyID, since time.Time) (resent, left int64, err error) {
	for run := a.do; ; run = a.again {
		var n int64
		err = run(ctx, locks, func(in within) (done act, err error) {
			if n, err = in.hooks.Recover(ctx, company, since); n > 0 {
				done = onWebhook("webhook.recover", company, nil, fields{"since": since, "found": n})
			}
			return done, err
		})
		if resent += n; err != nil || n < webhooks.RecoverMost {
			return resent, 0, err
		}
		if end, ends := ctx.Deadline(); ends && time.Until(end) < recoverReserve {
			left, err = a.Webhooks.GivenUp(ctx, company, since)
			return resent, left, err
		}
	}
}
