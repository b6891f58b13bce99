package smppserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"intumwa/accounts"
	"intumwa/accounts/keys"
	"intumwa/intake"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/smpp"
	"intumwa/smppserver/statuses"
	"intumwa/sms"
)

// requestWithin bounds the work for one request: a commit waits no longer.
const requestWithin = 25 * time.Second

// request answers one request of a bind. It must not block: the session waits.
func (s *Server) request(b *bind, r *smpp.Request) {
	switch r.Operation {
	case smpp.OpSubmit, smpp.OpData:
		s.submit(b, r)
	case smpp.OpQuery, smpp.OpCancel:
		if !s.bucketOf(b.account).take(1, false, time.Now()) {
			s.answer(r, tooFast)
			return
		}
		if r.Operation == smpp.OpQuery {
			go s.query(b, r)
		} else {
			go s.cancel(b, r)
		}
	case smpp.OpReplace:
		s.answer(r, refusal{smpp.StatusReplaceFailed, ""})
	default:
		s.answer(r, refusal{statuses.MultiFailed, ""})
	}
}

var tooFast = refusal{smpp.StatusThrottled, "Too many messages a second."}

func (s *Server) answer(r *smpp.Request, no refusal) {
	s.metrics.refused.WithLabelValues(no.status.String()).Inc()
	r.Refuse(no.status, no.text)
}

// submit checks a message and hands it to intake.
func (s *Server) submit(b *bind, r *smpp.Request) {
	m, no := s.read(b, r)
	if no != nil {
		s.answer(r, *no)
		return
	}
	segments := 1
	further := m.Origin.Part != nil && m.Origin.Part.Number > 1
	if m.Origin.Part == nil {
		_, segments = sms.Count(m.Message)
	}
	bucket := s.bucketOf(b.account)
	if !bucket.take(segments, further, time.Now()) {
		s.answer(r, tooFast)
		return
	}
	go func() {
		if !s.accept(b, r, m) {
			bucket.giveBack(segments)
		}
	}()
}

// accept answers a submit when it is committed or refused. It reports whether it was accepted.
func (s *Server) accept(b *bind, r *smpp.Request, m intake.Submit) bool {
	ctx, cancel := context.WithTimeout(context.Background(), requestWithin)
	defer cancel()
	holder, err := s.holder(ctx, b)
	if err != nil {
		s.answer(r, refused(err))
		return false
	}
	id, err := s.deps.Intake.Submit(ctx, holder, m)
	if errors.Is(err, intake.ErrOutcomeUnknown) {
		err = s.outcome(b.account, id)
	}
	switch {
	case errors.Is(err, intake.ErrOutcomeUnknown):
		// A refusal would be wrong if the message was accepted, and an acceptance if it was not. Without an answer the
		// client knows that it does not know.
		s.metrics.unknown.Inc()
		b.peer.Unbind("the outcome of a submit_sm is unknown", unknownWithin)
		return true
	case err != nil:
		no := refused(err)
		if no.status == smpp.StatusSysErr {
			s.log.Error("a submit_sm failed", "event", "smpp_submit_failed", "key_id", b.account, "error", err)
		}
		s.answer(r, no)
		return false
	}
	s.metrics.accepted.Inc()
	r.Accept(s.nameOf(ctx, b, id))
	return true
}

// holder returns the holder of a bind's key. An error of the database is ErrUnavailable.
func (s *Server) holder(ctx context.Context, b *bind) (*accounts.Principal, error) {
	p, err := s.deps.Holders.SMPPHolder(ctx, b.account)
	if err != nil && !errors.Is(err, accounts.ErrUnauthenticated) {
		err = fmt.Errorf("%w: %w", intake.ErrUnavailable, err)
	}
	return p, err
}

// unknownWithin is how long a bind goes on whose submit_sm stays without an answer: its other requests are answered in
// two thirds of it.
const unknownWithin = 6 * time.Second

// Waits of outcome.
const (
	outcomeWithin = 30 * time.Second
	outcomeTry    = 10 * time.Second // one look, which waits for the standby
	outcomeEvery  = time.Second
)

// outcome looks for a message whose COMMIT got no answer: nil if it was accepted, and a failover cannot take it back.
func (s *Server) outcome(key int64, id ulid.ULID) error {
	for end := time.Now().Add(outcomeWithin); time.Now().Before(end); time.Sleep(outcomeEvery) {
		ctx, cancel := context.WithTimeout(context.Background(), min(outcomeTry, time.Until(end)))
		known, err := s.deps.Messages.Known(ctx, []ulid.ULID{id})
		cancel()
		if err == nil && known[id] != 0 {
			return nil
		}
	}
	s.log.Warn("the outcome of a submit_sm is unknown", "event", "smpp_outcome_unknown", "key_id", key, "id", id)
	return intake.ErrOutcomeUnknown
}

// read checks what a submit_sm says.
func (s *Server) read(b *bind, r *smpp.Request) (m intake.Submit, no *refusal) {
	switch {
	case r.Replace != 0:
		return m, &refusal{smpp.StatusInvReplaceFlag, "replace_if_present_flag is not supported."}
	case r.DefaultMessage != 0:
		return m, &refusal{smpp.StatusInvDefaultMsg, "There are no predefined messages."}
	case !sms.ValidSender(r.Source):
		return m, &refusal{smpp.StatusInvSrcAddr, "The sender must be 1-11 letters and digits."}
	}
	number, ok := s.opts.Plan.Parse(r.Dest)
	if !ok && s.deps.Intake.IsTestSender(r.Source) {
		number, ok = sms.ParseSandbox(r.Dest)
	}
	if !ok {
		return m, &refusal{smpp.StatusInvDstAddr, "The destination_addr must be a valid Burundi (+257) number."}
	}
	text, form, no := textOf(r, s.latin1(b), func(p sms.Part, marked bool) bool {
		return s.orders.swapped(order{b.account, string(number), p.Reference, p.Total}, marked)
	})
	if no != nil {
		return m, no
	}
	schedule, no := scheduleOf(r, postgres.Now())
	if no != nil {
		return m, no
	}
	return intake.Submit{Number: number, Sender: r.Source, Message: text, Schedule: schedule,
		Origin: messages.Origin{Account: b.account, Bind: b.id, Registered: r.RegisteredDelivery & 3, Urgent: r.Priority > 0,
			Echo: echoOf(r), Form: form}}, nil
}

// latin1 reports whether a bind's program writes Latin-1 in the default alphabet.
func (s *Server) latin1(b *bind) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return b.key.Alphabet == keys.AlphabetLatin1
}

func (s *Server) bucketOf(key int64) *bucket {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys[key]
}
