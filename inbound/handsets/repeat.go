package handsets

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
)

// Answer is when the response to an MO was written.
type Answer struct {
	ID int64
	At time.Time
}

// Answered stores answers and returns those whose row is locked; the caller tries them again.
func (s *Store) Answered(ctx context.Context, answers []Answer) (left []Answer, err error) {
	ids, at := make([]int64, len(answers)), make([]time.Time, len(answers))
	for i, a := range answers {
		ids[i], at[i] = a.ID, a.At
	}
	done, err := postgres.All(ctx, s.pool, "noting answers to messages from handsets", pgx.RowTo[int64], `
		WITH u AS (SELECT unnest($1::bigint[]) AS id, unnest($2::timestamptz[]) AS at),
			free AS (SELECT id FROM inbound WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED),
			written AS (UPDATE inbound i SET answered_at = u.at FROM u JOIN free USING (id) WHERE i.id = u.id RETURNING i.id)
		SELECT id FROM written UNION ALL SELECT id FROM u WHERE NOT EXISTS (SELECT FROM inbound i WHERE i.id = u.id)`, ids,
		at)
	if err != nil {
		return answers, err
	}
	return slices.DeleteFunc(answers, func(a Answer) bool { return slices.Contains(done, a.ID) }), nil
}

// Repetition says whether an MO repeats an earlier one.
type Repetition uint8

// Values of Repetition.
const (
	Original Repetition = iota
	Repeated            // the carrier delivered the same message again
	Unknown             // the answer to the earlier one may be about to be stored
)

// answerWithin is how long after an MO its answer may be stored.
const answerWithin = 5 * time.Second

// repeats compares two MOs with the same bytes. A carrier delivers an MO again if it has not got our answer; what it
// delivers after our answer is new: people answer "1" twice. But the answer may have been lost with its session: after
// a reconnect a message with the same reference is the same message.
func (m *Inbound) repeats(other *Inbound, now time.Time) Repetition {
	switch {
	case m.sameReference(other) && m.BoundAt.After(other.At):
		return Repeated
	case other.AnsweredAt.IsZero() && now.Sub(other.At) < answerWithin && now.Sub(other.At) > -answerWithin:
		return Unknown
	case m.before(other) || other.before(m):
		return Original
	}
	return Repeated
}

// before reports whether m was answered before other came.
func (m *Inbound) before(other *Inbound) bool {
	return !m.AnsweredAt.IsZero() && !other.At.Before(m.AnsweredAt)
}

func (m *Inbound) sameReference(other *Inbound) bool {
	if m.Part != nil && other.Part != nil {
		return *m.Part == *other.Part
	}
	return m.Reference != nil && other.Reference != nil && *m.Reference == *other.Reference
}

// alikeMost is how many earlier MOs with the same bytes are compared.
const alikeMost = 50

// Repeats reports whether m repeats a whole MO that is routed already: same carrier, same addresses, same bytes,
// received at most window apart, over any link. The caller holds the switchboard's lock, so no other MO is routed
// meanwhile.
func (s *Store) Repeats(ctx context.Context, m *Inbound, window time.Duration) (Repetition, error) {
	alike,
		err := s.inbounds(
		ctx,
		`source = $1 AND received_at BETWEEN $2::timestamptz - $3::interval AND $2::timestamptz + $3::interval
			AND carrier = $4 AND destination = $5 AND part_reference IS NULL 
			AND data_coding = $6 AND esm_class = $7 AND octets = $8
			AND outcome <> 'duplicate' -- NULL: not routed yet
		ORDER BY id DESC LIMIT $9`,
		m.Source, m.At, window, m.Carrier, m.Destination, int16(m.DataCoding), int16(m.ESMClass), m.Octets, alikeMost)
	if err != nil {
		return Original, err
	}
	return m.repeatsAny(alike), nil
}

// repeatsAny is repeats for several earlier MOs.
func (m *Inbound) repeatsAny(alike []Inbound) (r Repetition) {
	now := postgres.Now()
	for i := range alike {
		switch m.repeats(&alike[i], now) {
		case Repeated:
			return Repeated
		case Unknown:
			r = Unknown
		}
	}
	return r
}

// repeatsPart is repeats for parts of one message: a part that waits for others is needed once only.
func (m *Inbound) repeatsPart(earlier []Inbound) Repetition {
	var alike []Inbound
	for i := range earlier {
		o := &earlier[i]
		if o.Part.Number != m.Part.Number || o.DataCoding != m.DataCoding || !bytes.Equal(o.Octets, m.Octets) {
			continue
		}
		if o.Outcome == Waiting {
			return Repeated
		}
		alike = append(alike, *o)
	}
	return m.repeatsAny(alike)
}
