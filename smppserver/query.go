package smppserver

import (
	"context"
	"errors"

	"github.com/oklog/ulid/v2"

	"intumwa/messages"
	"intumwa/smpp"
	"intumwa/sms"
)

// find returns the message of a query_sm or cancel_sm, if it is the company's and from the same sender. Otherwise the request
// is answered, with missing where there is none.
func (s *Server) find(ctx context.Context, b *bind, r *smpp.Request, missing smpp.Status) (m messages.Record, found bool) {
	holder, err := s.holder(ctx, b)
	if err != nil {
		s.answer(r, refused(err))
		return m, false
	}
	id, bad := ulid.ParseStrict(r.MessageID)
	if bad != nil || holder.Company == nil {
		s.answer(r, refusal{missing, ""})
		return m, false
	}
	m, err = s.rooms.Messages.ByULID(ctx, sms.CompanyID(holder.Company.ID), id)
	switch {
	case errors.Is(err, messages.ErrNotFound), err == nil && r.Source != "" && r.Source != m.Sender:
		s.answer(r, refusal{missing, ""})
		return m, false
	case err != nil:
		s.answer(r, refusal{smpp.StatusMsgQueueFull, ""})
		return m, false
	}
	return m, true
}

// query answers a query_sm from the database.
func (s *Server) query(b *bind, r *smpp.Request) {
	ctx, cancel := context.WithTimeout(context.Background(), requestWithin)
	defer cancel()
	m, found := s.find(ctx, b, r, smpp.StatusInvMessageID)
	if !found {
		return
	}
	state, code, date := stateEnroute, 0, ""
	switch m.Status {
	case sms.Sent:
		state, date = stateDelivered, formatTime(*m.SentAt)
	case sms.Failed:
		state, code = stateOf(false, m.FailureReason)
		date = formatTime(*m.FailedAt)
	}
	r.AnswerQuery(m.ULID.String(), date, state.value, uint8(min(code, 255)))
}

// cancel answers a cancel_sm of one message: no carrier has it any more, and its credits are returned.
func (s *Server) cancel(b *bind, r *smpp.Request) {
	ctx, cancel := context.WithTimeout(context.Background(), requestWithin)
	defer cancel()
	if r.MessageID == "" {
		s.answer(r, refusal{smpp.StatusCancelFailed, ""})
		return
	}
	m, found := s.find(ctx, b, r, smpp.StatusCancelFailed)
	if !found {
		return
	}
	cancelled, _, err := s.rooms.Cancel(ctx, messages.Queued{Company: m.CompanyID, Message: m.ID})
	switch {
	case err != nil:
		s.answer(r, refusal{smpp.StatusMsgQueueFull, ""})
	case cancelled == 0: // a carrier has it, or it is final
		s.answer(r, refusal{smpp.StatusCancelFailed, ""})
	default:
		r.Accept("")
	}
}
