package messages

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Inbound is a message from a handset (a deliver_sm that is no receipt).
type Inbound struct {
	ID          int64
	At          time.Time
	Carrier     string
	Link        string
	Source      string
	Destination string
	DataCoding  uint8
	ESMClass    uint8
	Body        *string // nil: not text in a coding we read
	Octets      []byte  // as it came, header included
}

// KeepInbound stores messages from handsets.
func (s *Store) KeepInbound(ctx context.Context, tx pgx.Tx, inbound []Inbound) error {
	if len(inbound) == 0 {
		return nil
	}
	batch := &pgx.Batch{}
	for _, m := range inbound {
		body := m.Body
		if body != nil {
			text := clean(*body)
			body = &text
		}
		batch.Queue(`INSERT INTO inbound (received_at, carrier, link, source, destination, data_coding, esm_class, body, octets)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			m.At, m.Carrier, m.Link, clean(m.Source), clean(m.Destination), int16(m.DataCoding), int16(m.ESMClass), body, m.Octets)
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("keeping %d messages from handsets: %w", len(inbound), err)
	}
	return nil
}

// Inbounds returns the latest messages from handsets, at most limit, and with
// before > 0 only those with smaller ids (the next page).
func (s *Store) Inbounds(ctx context.Context, before int64, limit int) ([]Inbound, error) {
	rows, err := s.pool.Query(ctx, `SELECT id, received_at, carrier, link, source, destination, data_coding, esm_class, body, octets
		FROM inbound WHERE $1 <= 0 OR id < $1 ORDER BY id DESC LIMIT $2`, before, limit)
	if err != nil {
		return nil, fmt.Errorf("reading messages from handsets: %w", err)
	}
	inbound, err := pgx.CollectRows(rows, scanInbound)
	if err != nil {
		return nil, fmt.Errorf("reading messages from handsets: %w", err)
	}
	return inbound, nil
}

func scanInbound(row pgx.CollectableRow) (m Inbound, err error) {
	err = row.Scan(&m.ID, &m.At, &m.Carrier, &m.Link, &m.Source, &m.Destination, &m.DataCoding, &m.ESMClass, &m.Body, &m.Octets)
	return m, err
}

// ForgetInbound deletes messages from handsets older than life, up to 20,000 a
// call, and returns how many.
func (s *Store) ForgetInbound(ctx context.Context, life time.Duration) (int64, error) {
	tag, err := s.pool.Exec(ctx, `DELETE FROM inbound WHERE id IN (
		SELECT id FROM inbound WHERE received_at < now() - $1::interval ORDER BY received_at LIMIT $2 FOR UPDATE SKIP LOCKED)`, life, forgetLimit)
	if err != nil {
		return 0, fmt.Errorf("forgetting messages from handsets: %w", err)
	}
	return tag.RowsAffected(), nil
}
