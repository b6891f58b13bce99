package retention

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/messages/numberfilter"
	"intumwa/messages/receipts"
	"intumwa/sms"
)

// obscured is sms.Number.Obscured of a recipient, in SQL; plainNumber is true before that. No index has the column: the
// row stays on its page.
const (
	obscured    = `left(phone_number, 5) || 'XXXXX' || right(phone_number, 2)`
	plainNumber = `phone_number NOT LIKE '%X%'`
)

// obscure removes the numbers of a step's messages. Their rows stay, for the audit and the counts.
func (p *purging) obscure(ctx context.Context, tx pgx.Tx) (done int64, err error) {
	b := &pgx.Batch{}
	p.pass(b)
	return obscure(ctx, tx, p.leaving, obscureNumbers, b)
}

// The statements that obscure the numbers of the messages $1; the second one erases the texts and references too.
const (
	obscureNumbers = `UPDATE messages SET phone_number = ` + obscured + ` WHERE id = ANY($1) AND ` + plainNumber
	eraseAll       = `UPDATE messages SET phone_number = ` + obscured +
		`, body = '', secret = NULL, client_reference = NULL WHERE id = ANY($1) AND ` + plainNumber
)

// obscure removes the numbers of final messages wherever they are, with one of the statements above, and runs the
// statements of passed. The caller has locked the filters.
func obscure(ctx context.Context, tx pgx.Tx, ids []int64, statement string, passed *pgx.Batch) (done int64, err error) {
	b := &pgx.Batch{}
	b.Queue(forgetReferences, ids)
	changed(b.Queue(statement, ids), &done)
	receipts.QueueObscure(b, ids)
	b.QueuedQueries = append(b.QueuedQueries, passed.QueuedQueries...)
	if err := tx.SendBatch(ctx, b).Close(); err != nil || done == 0 {
		return done, err
	}
	return done, numberfilter.Refilter(ctx, tx, ids)
}

// Erased is the result of Erase.
type Erased struct {
	Messages int64 // without text and number now
	Pending  int64 // left unchanged: they are not final
}

// Ref identifies a message of a company.
type Ref struct{ ID, CompanyID int64 }

// Erase removes the texts and references of messages to a number and obscures the number, in one transaction, unless
// they are not final. It calls also in the transaction with the final ones, ascending; also returns those that are
// still needed. Other rows that name the number go too.
func (s *Store) Erase(ctx context.Context, number sms.Number, ids []int64,
	also func(tx pgx.Tx, final []Ref) (needed []int64, err error)) (done Erased, err error) {
	if len(ids) == 0 {
		return Erased{}, nil
	}
	ids = slices.Clone(ids)
	slices.Sort(ids)
	err = postgres.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		done = Erased{}
		if err := numberfilter.Lock(ctx, tx); err != nil {
			return err
		}
		refs, err := postgres.All(ctx, tx, "locking messages", pgx.RowToStructByPos[Ref],
			`SELECT m.id, m.company_id FROM messages m WHERE m.id = ANY($1) AND m.phone_number = $2 AND `+finished+
				` ORDER BY m.id FOR UPDATE`, ids, string(number))
		if err != nil {
			return err
		}
		needed, err := also(tx, refs)
		if err != nil {
			return err
		}
		var final []int64
		for _, ref := range refs {
			if !slices.Contains(needed, ref.ID) {
				final = append(final, ref.ID)
			}
		}
		done.Messages, err = obscure(ctx, tx, final, eraseAll, &pgx.Batch{})
		done.Pending = int64(len(ids)) - done.Messages
		return err
	})
	if err != nil {
		return Erased{}, fmt.Errorf("erasing %d messages: %w", len(ids), err)
	}
	return done, nil
}

// EraseReferences deletes the concatenation references of a number. Call it when no message to it is pending.
func (s *Store) EraseReferences(ctx context.Context, number sms.Number) error {
	if _, err := s.pool.Exec(ctx, `DELETE FROM concat_refs WHERE phone_number = $1`, string(number)); err != nil {
		return fmt.Errorf("deleting the references of a number: %w", err)
	}
	return nil
}
