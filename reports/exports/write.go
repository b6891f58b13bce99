package exports

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages/lookup"
	"intumwa/texts"
)

const (
	step     = 500             // messages; a text has up to 39 KB
	lease    = time.Minute     // longer than a step and its rest take
	turn     = 2 * time.Second // then another company's export continues
	rest     = 3               // pause after a step, in multiples of its duration
	restMost = 5 * time.Second // a step may also have waited for the database
)

// errLost means that another process has continued the file, or that its content was withdrawn.
var errLost = errors.New("another process continues the export, or it is withdrawn")

// WriteNext continues the export that has waited longest, for one turn, and reports whether there was one.
func (e *Exports) WriteNext(ctx context.Context) (found bool, err error) {
	due, err := postgres.All(ctx, e.pool, "taking an export", scan, `UPDATE exports SET taken_until = now() + $1::interval
		WHERE id = (SELECT id FROM exports WHERE done_at IS NULL AND taken_until <= now() ORDER BY taken_until LIMIT 1
		FOR UPDATE SKIP LOCKED)
		RETURNING `+columns, lease)
	if err != nil || len(due) == 0 {
		return false, err
	}
	x, pause := &due[0], time.Duration(0)
	for began := time.Now(); err == nil && x.DoneAt == nil && x.Gone == "" && time.Since(began) < turn; {
		start := time.Now()
		if err = e.step(ctx, x); err == nil && x.DoneAt == nil && x.Gone == "" {
			select {
			case <-ctx.Done():
				err = ctx.Err()
			case <-time.After(min(rest*time.Since(start), restMost)):
			}
		}
	}
	switch {
	case errors.Is(err, errLost):
		return true, nil
	case err != nil:
		pause = again
	case x.Gone != "":
		e.log.Warn("an export became too large and is given up", "event", "export_too_large", "export", x.ID, "company_id",
			int64(x.Company), "messages", x.Messages)
		return true, nil
	case x.DoneAt != nil:
		e.log.Info("an export is written", "event", "export_written", "export", x.ID, "company_id", int64(x.Company),
			"messages", x.Messages, "bytes", x.Size)
		return true, nil
	}
	_, left := e.pool.Exec(context.WithoutCancel(ctx),
		`UPDATE exports SET taken_until = now() + $2::interval WHERE id = $1 AND done_at IS NULL`, x.ID, pause)
	return true, errors.Join(err, left)
}

// step writes the next rows and stores them.
func (e *Exports) step(ctx context.Context, x *Export) error {
	language, known := e.words.ByTag(x.Language)
	if !known {
		return fmt.Errorf("export %d has the language %q", x.ID, x.Language)
	}
	var text bytes.Buffer
	out := language.CSV(&text)
	f := &form{language: language, operators: x.Operators, bodies: x.Bodies}
	before := *x
	if x.first == nil {
		if err := e.begin(ctx, x); err != nil {
			return err
		}
		text.WriteString(texts.CSVMark)
		if err := f.begin(out); err != nil {
			return err
		}
	}
	if x.textsFrom != nil {
		f.textsFrom = *x.textsFrom
	}
	span := lookup.Span{Company: x.Company, After: *x.position, Until: *x.last}
	span.From, span.To = Span(x.Month)
	page, err := e.lookup.Read(ctx, span, step)
	if err != nil {
		return err
	}
	if err := e.rows(ctx, f, out, page); err != nil {
		return err
	}
	if out.Flush(); out.Error() != nil {
		return out.Error()
	}
	if n := len(page); n > 0 {
		x.position = &page[n-1].ID
	}
	x.Messages, x.Size = x.Messages+int64(len(page)), x.Size+int64(text.Len())
	if x.Size > sizeMost {
		_, err := withdraw(ctx, e.pool, GoneSize, `id = $2`, x.ID)
		x.Gone = GoneSize
		return err
	}
	return e.store(ctx, x, &before, text.Bytes(), len(page) < step)
}

// begin sets which messages the file is to have, and for how long it is kept: no text longer than its retention.
func (e *Exports) begin(ctx context.Context, x *Export) error {
	from, to := Span(x.Month)
	span, err := e.lookup.SpanOf(ctx, x.Company, from, to)
	if err != nil {
		return err
	}
	x.first, x.position, x.last = new(span.After), new(span.After), new(span.Until)
	if !x.Bodies {
		return nil
	}
	keep, ruled := e.texts, false
	rule, err := e.retention.BodyRule(ctx, x.Company)
	if err != nil {
		return err
	}
	if rule != nil {
		keep, ruled = *rule, true
	}
	if keep > 0 || ruled {
		now := postgres.Now()
		x.textsFrom, x.ExpiresAt = new(now.Add(textLife-keep)), now.Add(textLife)
	}
	return nil
}

// store appends text to the file and records how far it reaches, unless it has changed since before.
func (e *Exports) store(ctx context.Context, x, before *Export, text []byte, done bool) error {
	return postgres.InTx(ctx, e.pool, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `UPDATE exports SET first = $4, position = $5, last = $6, messages = $7, size = $8,
			texts_from = $9, expires_at = least(expires_at, $10),
				taken_until = now() + $11::interval, done_at = CASE WHEN $12 THEN now() END
			WHERE id = $1 AND size = $2 AND position IS NOT DISTINCT FROM $3 AND done_at IS NULL RETURNING done_at`,
			x.ID, before.Size, before.position, x.first, x.position, x.last, x.Messages, x.Size, x.textsFrom, x.ExpiresAt, lease,
			done).Scan(&x.DoneAt)
		if errors.Is(err, pgx.ErrNoRows) {
			return errLost
		}
		if err != nil {
			return fmt.Errorf("recording export %d: %w", x.ID, err)
		}
		b := &pgx.Batch{}
		n, begun := before.Size/pieceSize, int(before.Size%pieceSize)
		for rest := text; len(rest) > 0; n++ {
			piece := rest[:min(len(rest), pieceSize-begun)]
			b.Queue(`INSERT INTO export_pieces AS p (export_id, n, content) VALUES ($1, $2, $3)
				ON CONFLICT (export_id, n) DO UPDATE SET content = p.content || excluded.content`, x.ID, n, piece)
			rest, begun = rest[len(piece):], 0
		}
		return postgres.Pipeline(ctx, tx, fmt.Sprintf("storing export %d", x.ID), b)
	})
}

// Stream writes the file of a request to w at once, without storing it: for operators. Texts that are still there are
// in it.
func (e *Exports) Stream(ctx context.Context, w io.Writer, r Request) (written int64, err error) {
	language, known := e.words.ByTag(r.Language)
	if !known {
		return 0, fmt.Errorf("there is no language %q", r.Language)
	}
	from, to := Span(r.Month)
	span, err := e.lookup.SpanOf(ctx, r.Company, from, to)
	if err != nil {
		return 0, err
	}
	if _, err := io.WriteString(w, texts.CSVMark); err != nil {
		return 0, err
	}
	f, out := &form{language: language, operators: r.Operators, bodies: r.Bodies}, language.CSV(w)
	err = f.begin(out)
	for full := true; full && err == nil; {
		var page []lookup.Sent
		if page, err = e.lookup.Read(ctx, span, step); err != nil {
			break
		}
		if full = len(page) == step; full {
			span.After = page[step-1].ID
		}
		err = e.rows(ctx, f, out, page)
		written += int64(len(page))
	}
	out.Flush()
	return written, errors.Join(err, out.Error())
}
