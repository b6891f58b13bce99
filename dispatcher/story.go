package dispatcher

import (
	"context"
	"log/slog"
	"time"

	"intumwa/messages"
	"intumwa/sms"
)

// tell logs at debug level what a lot that is committed said of each message,
// by its ULID, so that one message can be followed through the log. At other
// levels it costs nothing.
func (s *settler) tell(w work, outcomes []messages.Outcome, reported []messages.SegmentState) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	log := s.d.log
	if !log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	for _, r := range w.results {
		log.Debug("segment answered", "id", r.journey.msg.ULID, "message_id", r.journey.msg.ID, "carrier", s.carrier.name,
			"link", r.journey.lane.link, "segment", r.segment, "attempt", r.journey.msg.Attempt, "outcome", r.Outcome.String(),
			"status", r.Status.String(), "carrier_id", r.MessageID)
	}
	whose := make(map[int]int64, len(reported)) // receipt -> message
	ids := make([]int64, len(reported))
	for i, st := range reported {
		whose[st.From], ids[i] = st.MessageID, st.MessageID
	}
	names, err := s.d.store.ULIDs(ctx, ids)
	if err != nil {
		log.Debug("looking up whose receipts these are", "error", err)
	}
	n := 0 // of the receipts
	for _, a := range w.receipts {
		if a.inbound != nil {
			continue
		}
		fields := []any{"carrier", s.carrier.name, "link", a.Link, "carrier_id", a.CarrierID, "state", a.State, "outcome", string(outcomes[n])}
		if id, known := whose[n]; known {
			fields = append([]any{"id", names[id], "message_id", id}, fields...)
		}
		log.Debug("receipt", fields...)
		n++
	}
}

// tell logs a message that became final.
func (d *Dispatcher) tell(m messages.Settled) {
	if m.Status == sms.Failed {
		d.log.Info("message failed", "id", m.ULID, "message_id", m.ID, "carrier", m.Carrier, "number", m.Number.Masked(), "reason", m.Reason)
		return
	}
	d.log.Debug("message sent", "id", m.ULID, "message_id", m.ID, "carrier", m.Carrier)
}
