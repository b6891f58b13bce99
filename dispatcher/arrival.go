package dispatcher

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"intumwa/inbound/handsets"
	"intumwa/messages/receipts"
	"intumwa/smpp"
)

// sorted separates the receipts from the MOs. It keeps MOs until room rows are used; the
// kept ones take kept rows.
func sorted(arrivals []arrival, room int) (reports []receipts.Receipt, inbound []handsets.Inbound, kept int) {
	reports = make([]receipts.Receipt, 0, len(arrivals))
	for i := range arrivals {
		a := &arrivals[i]
		switch {
		case a.inbound == nil:
			reports = append(reports, a.Receipt)
		case kept < room:
			inbound = append(inbound, *a.inbound)
			kept += rowsOf(a.inbound)
		}
	}
	return reports, inbound, kept
}

// rowsOf is the cost of an MO in its carrier's quota: one row per segment.
func rowsOf(m *handsets.Inbound) int { return 1 + len(m.Octets)/140 }

// answer responds to deliveries whose settlement is committed. The first inbound MOs
// were kept; the others are throttled.
func (s *settler) answer(arrivals []arrival, outcomes []receipts.Outcome, inbound []handsets.Inbound) {
	n := 0 // of the receipts
	for i := range arrivals {
		a := &arrivals[i]
		if a.inbound != nil {
			if len(inbound) == 0 {
				s.throttle(a, inboundKind)
				continue
			}
			s.answers.ok(inbound[0].ID, a.pdu)
			inbound = inbound[1:]
			s.metrics.inbound.WithLabelValues(s.carrier.name).Inc()
			continue
		}
		outcome := outcomes[n]
		n++
		if outcome == receipts.Throttled {
			s.throttle(a, unmatchedKind)
			continue
		}
		a.pdu.Respond(smpp.StatusOK)
		s.metrics.receipts.WithLabelValues(s.carrier.name, a.Link, string(outcome)).Inc()
		if outcome == receipts.Unmatched {
			s.carrier.unmatched.take(1)
		}
	}
}

// throttle refuses a delivery that exceeds the carrier's hourly limit.
func (s *settler) throttle(a *arrival, kind string) {
	a.pdu.Respond(cmp.Or(s.carrier.config().DeliveryRefusal, smpp.StatusThrottled))
	s.metrics.throttled.WithLabelValues(s.carrier.name, kind).Inc()
	if n, due := s.throttled.Due(time.Now()); due {
		s.log.Warn("a carrier delivers more than its hourly limit and is throttled", "event", "carrier_over_limit", "carrier", s.carrier.name, "kind", kind, "count", n)
	}
}

// logSettled logs at debug level what a committed transaction recorded for each message,
// with its ULID. At other levels it costs nothing.
func (s *settler) logSettled(w settlement, recorded receipts.Recorded) {
	log := s.log
	if !log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, r := range w.results {
		log.Debug("segment answered", "id", r.message.msg.ULID, "message_id", r.message.msg.ID, "carrier", s.carrier.name,
			"link", r.message.link, "segment", r.segment, "attempt", r.message.msg.Attempt, "outcome", r.Outcome.String(),
			"status", r.Status.String(), "carrier_id", r.MessageID)
	}
	names, err := s.store.lookup.ULIDs(ctx, recorded.Whose)
	if err != nil {
		log.Debug("looking up whose receipts these are", "error", err)
	}
	n := 0 // of the receipts
	for _, a := range w.receipts {
		if a.inbound != nil {
			continue
		}
		outcome, id := recorded.Outcomes[n], recorded.Whose[n]
		fields := []any{"carrier", s.carrier.name, "link", a.Link, "carrier_id", a.CarrierID, "state", a.State, "outcome", string(outcome)}
		if outcome == receipts.Matched {
			fields = append([]any{"id", names[id], "message_id", id}, fields...)
		}
		log.Debug("receipt", fields...)
		n++
	}
}
