package operations

import (
	"context"
	"time"

	"intumwa/accounts"
	"intumwa/accounts/senders"
	"intumwa/sms"
)

func recordedSender(s senders.SenderRequest) fields {
	return fields{"name": s.Name, "country": s.Country, "purpose": s.Purpose, "approved": s.Approved}
}

// CreateSender registers a sender for a company.
func (a Actor) CreateSender(ctx context.Context, company int64, name, country string, approved bool) (s accounts.Sender,
	err error) {
	err = a.do(ctx, reads, func(in within) (act, error) {
		s, err = in.senders().CreateSender(ctx, company, name, country, approved)
		return on("sender.create", "sender", s.ID, company, nil, recordedSender(senders.SenderRequest{Sender: s})), err
	})
	return s, err
}

// AskForSender stores a company's request for a sender.
func (a Actor) AskForSender(ctx context.Context, company sms.CompanyID, name, country, purpose string) error {
	return a.do(ctx, locks, func(in within) (act, error) {
		r, err := in.senders().RequestSender(ctx, company, name, country, purpose)
		return on("sender.ask", "sender", r.ID, int64(company), nil, recordedSender(r)), err
	})
}

// Decision is a decision about a sender.
type Decision struct {
	Approved bool
	Reason   string  // of a refusal, or of the end of an approval, for the company: without one it gets no letter
	Version  *string // of the request that the decision is about ([senders.SenderRequest.Version]); nil: not checked
}

// DecideSender approves a sender, refuses it, or ends its approval. [ErrChanged] for another version.
func (a Actor) DecideSender(ctx context.Context, id int64, to Decision) (is senders.SenderRequest, err error) {
	err = a.do(ctx, reads, func(in within) (act, error) {
		was, err := in.senders().SenderByID(ctx, id)
		if err != nil {
			return act{}, err
		}
		if to.Version != nil && *to.Version != was.Version() {
			return act{}, ErrChanged
		}
		done := on("sender.set", "sender", id, was.CompanyID, recordedSender(was), nil)
		if to.Approved || to.Reason == "" {
			is, err = in.senders().SetSender(ctx, id, to.Approved)
			done.reason = to.Reason
		} else {
			is, err = in.senders().RefuseSender(ctx, id, to.Reason)
			done.name, done.reason = "sender.refuse", is.Refusal
			done.hidden = was.State() != is.State() || was.Refusal != is.Refusal
		}
		done.after = recordedSender(is)
		return done, err
	})
	return is, err
}

func recordedRegistration(r senders.Registration) any {
	if r.ID == 0 {
		return nil
	}
	var sent any
	if r.SentOn != nil {
		sent = r.SentOn.Format(time.DateOnly)
	}
	return fields{"name": r.Sender, "carrier": r.Carrier, "state": r.State, "reason": r.Reason, "sent_on": sent}
}

// SetRegistration records a sender's state at a carrier, which must be one of the configuration. [ErrChanged] for
// another version ([senders.Registration.Version]), unless nil.
func (a Actor) SetRegistration(ctx context.Context, sender int64, carrier string, to senders.RegistrationChange,
	version *string) (is senders.Registration, err error) {
	err = a.do(ctx, locks, func(in within) (act, error) {
		was, now, err := in.senders().SetRegistration(ctx, sender, carrier, to)
		if err == nil && version != nil && *version != was.Version() {
			err = ErrChanged
		}
		is = now
		return on("sender.carrier", "sender", sender, now.CompanyID, recordedRegistration(was), recordedRegistration(now)),
			err
	})
	return is, err
}

// SetRegistrationDocument stores the latest document about a sender at a carrier.
func (a Actor) SetRegistrationDocument(ctx context.Context, registration int64, name string, file []byte) error {
	return a.do(ctx, locks, func(in within) (act, error) {
		was, err := in.senders().RegistrationByID(ctx, registration)
		if err != nil {
			return act{}, err
		}
		if err := in.senders().SetRegistrationDocument(ctx, registration, name, file); err != nil {
			return act{}, err
		}
		is, err := in.senders().RegistrationByID(ctx, registration)
		done := on("sender.carrier_document", "sender", was.SenderID, was.CompanyID, recordedDocument(was.Document),
			recordedDocument(is.Document))
		done.hidden = true // the content
		return done, err
	})
}
