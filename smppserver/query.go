package smppserver

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/oklog/ulid/v2"

	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/smpp"
	"intumwa/sms"
)

// find returns the message of a query_sm or cancel_sm, if it is the company's and from the same sender. Otherwise the
// request is answered, with missing where there is none.
func (s *Server) find(ctx context.Context, b *bind, r *smpp.Request, missing smpp.Status) (m lookup.Record,
	found bool) {
	holder, err := s.holder(ctx, b)
	if err != nil {
		s.answer(r, refused(err))
		return m, false
	}
	id, bad := ulid.ParseStrict(r.MessageID)
	number, unnumbered := strconv.ParseInt(r.MessageID, 16, 64)
	switch {
	case holder.Company == nil, bad != nil && unnumbered != nil:
		s.answer(r, refusal{missing, ""})
		return m, false
	case bad != nil:
		m, err = s.deps.Lookup.ByID(ctx, sms.CompanyID(holder.Company.ID), number)
	default:
		m, err = s.deps.Lookup.ByULID(ctx, sms.CompanyID(holder.Company.ID), id)
	}
	switch {
	case errors.Is(err, messages.ErrNotFound) && bad == nil && r.Operation == smpp.OpQuery && s.purged(ctx, id):
		s.answer(r, refusal{smpp.StatusQueryFailed, ""})
		return m, false
	case errors.Is(err, messages.ErrNotFound), err == nil && r.Source != "" && r.Source != m.Sender:
		s.answer(r, refusal{missing, ""})
		return m, false
	case err != nil:
		s.answer(r, refusal{smpp.StatusMsgQueueFull, ""})
		return m, false
	}
	return m, true
}

func (s *Server) purged(ctx context.Context, id ulid.ULID) bool {
	purged, err := s.deps.Lookup.Purged(ctx, id)
	return err == nil && purged
}

// shortName is a message's name for SMPP 3.3, whose programs have room for 8 hexadecimal digits: its message_id in
// webhooks.
func shortName(id int64) string { return fmt.Sprintf("%08X", id) }

// nameOf returns the name of an accepted message for a bind's program.
func (s *Server) nameOf(ctx context.Context, b *bind, id ulid.ULID) string {
	if b.short {
		if known, err := s.deps.Messages.Known(ctx, []ulid.ULID{id}); err == nil && known[id] != 0 {
			return shortName(known[id])
		}
	}
	return id.String()
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
	r.AnswerQuery(r.MessageID, date, state.value, uint8(min(code, 255)))
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
	cancelled, _, err := s.deps.Cancel(ctx, messages.Queued{Company: m.CompanyID, Message: m.ID})
	switch {
	case err != nil:
		s.answer(r, refusal{smpp.StatusMsgQueueFull, ""})
	case cancelled == 0: // a carrier has it, or it is final
		s.answer(r, refusal{smpp.StatusCancelFailed, ""})
	default:
		r.Accept("")
	}
}
