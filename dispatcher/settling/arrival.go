package settling

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"intumwa/dispatcher/core"
	"intumwa/inbound/handsets"
	"intumwa/messages/receipts"
	"intumwa/smpp"
)

// sorted separates the receipts from the MOs. It keeps MOs while their rows fit into room; kept is how many rows they
// use.
func sorted(arrivals []Arrival, room int) (reports []receipts.Receipt, inbound []handsets.Inbound, kept int) {
	reports = make([]receipts.Receipt, 0, len(arrivals))
	for i := range arrivals {
		a := &arrivals[i]
		switch {
		case a.Inbound == nil:
			reports = append(reports, a.Receipt)
		case kept < room:
			inbound = append(inbound, *a.Inbound)
			kept += rowsOf(a.Inbound)
		}
	}
	return reports, inbound, kept
}

// rowsOf is the cost of an MO in its carrier's quota: one row per segment.
func rowsOf(m *handsets.Inbound) int { return 1 + len(m.Octets)/140 }

// answer responds to deliveries whose settlement is committed. The first inbound MOs
// were kept; the others are throttled.
func (s *Settler) answer(arrivals []Arrival, outcomes []receipts.Outcome, inbound []handsets.Inbound) {
	n := 0 // of the receipts
	for i := range arrivals {
		a := &arrivals[i]
		if a.Inbound != nil {
			if len(inbound) == 0 {
				s.throttle(a, core.InboundKind)
				continue
			}
			s.Answers.ok(inbound[0].ID, a.PDU)
			inbound = inbound[1:]
			s.Metrics.Inbound.WithLabelValues(s.Carrier.Name).Inc()
			continue
		}
		outcome := outcomes[n]
		n++
		if outcome == receipts.Throttled {
			s.throttle(a, core.UnmatchedKind)
			continue
		}
		a.PDU.Respond(smpp.StatusOK)
		s.Metrics.Receipts.WithLabelValues(s.Carrier.Name, a.Link, string(outcome)).Inc()
		if outcome == receipts.Unmatched {
			s.Carrier.Unmatched.Take(1)
		}
	}
}

// throttle refuses a delivery that exceeds the carrier's hourly limit.
func (s *Settler) throttle(a *Arrival, kind string) {
	a.PDU.Respond(cmp.Or(s.Carrier.Config().DeliveryRefusal, smpp.StatusThrottled))
	s.Metrics.Throttled.WithLabelValues(s.Carrier.Name, kind).Inc()
	if n, due := s.throttled.Due(time.Now()); due {
		s.Log.Warn("a carrier delivers more than its hourly limit and is throttled", "event", "carrier_over_limit", "carrier",
			s.Carrier.Name, "kind", kind, "count", n)
	}
}

// logSettled logs at debug level what a committed transaction recorded for each message,
// with its ULID. At other levels it costs nothing.
func (s *Settler) logSettled(w Settlement, recorded receipts.Recorded) {
	log := s.Log
	if !log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, r := range w.Results {
		log.Debug("segment answered", "id", r.Message.Msg.ULID, "message_id", r.Message.Msg.ID, "carrier", s.Carrier.Name,
			"link", r.Message.Link, "segment", r.Segment, "attempt", r.Message.Msg.Attempt, "outcome", r.Outcome.String(),
			"status", r.Status.String(), "carrier_id", r.MessageID)
	}
	names, err := s.Store.Lookup.ULIDs(ctx, recorded.Whose)
	if err != nil {
		log.Debug("looking up whose receipts these are", "error", err)
	}
	n := 0 // of the receipts
	for _, a := range w.Receipts {
		if a.Inbound != nil {
			continue
		}
		outcome, id := recorded.Outcomes[n], recorded.Whose[n]
		fields := []any{"carrier", s.Carrier.Name, "link", a.Link, "carrier_id", a.CarrierID, "state", a.State, "outcome",
			string(outcome)}
		if outcome == receipts.Matched {
			fields = append([]any{"id", names[id], "message_id", id}, fields...)
		}
		log.Debug("receipt", fields...)
		n++
	}
}
