package messages

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"intumwa/internal/postgres"
	"intumwa/messages/receipts"
	"intumwa/sms"
)

// obscured is what sms.Number.Obscured makes of a recipient, in a statement; plainNumber
// tells that it was not done yet. The column is in no index: the row stays on its page.
const (
	obscured    = `left(phone_number, 5) || 'XXXXX' || right(phone_number, 2)`
	plainNumber = `phone_number NOT LIKE '%X%'`
)

// obscure forgets whom messages went to. Their rows stay, for the audit and the counts.
func (p *purging) obscure(ctx context.Context, tx pgx.Tx) (done int64, err error) {
	b := &pgx.Batch{}
	b.Queue(forgetReferences, p.leaving)
	receipts.QueueObscure(b, p.leaving)
	b.Queue(`UPDATE messages SET phone_number = `+obscured+` WHERE id = ANY($1) AND `+plainNumber, p.leaving).Exec(func(tag pgconn.CommandTag) error {
		done = tag.RowsAffected()
		return nil
	})
	p.pass(b)
	if err := tx.SendBatch(ctx, b).Close(); err != nil || done == 0 {
		return done, err
	}
	return done, refilter(ctx, tx, p.leaving)
}

// Erased is what Erase did with the messages that it was given.
type Erased struct {
	Messages int64 // that are without text and number now
	Pending  int64 // that it left as they are: something may still become of them
}

// Ref names a message and whose it is.
type Ref struct{ ID, CompanyID int64 }

// Erase removes the texts of messages to a number, and the customers' references, and
// obscures it, in one transaction,
// unless something may still become of them. also is called in the transaction with
// those that are final, ascending, and returns which of them are still needed. With the
// number goes what is kept beside a message that names it.
func (s *Store) Erase(ctx context.Context, number sms.Number, ids []int64, also func(tx pgx.Tx, final []Ref) (needed []int64, err error)) (done Erased, err error) {
	if len(ids) == 0 {
		return Erased{}, nil
	}
	ids = slices.Clone(ids)
	slices.Sort(ids)
	err = postgres.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		done = Erased{}
		if err := lockFilters(ctx, tx); err != nil {
			return err
		}
		refs, err := postgres.All(ctx, tx, "locking messages", pgx.RowToStructByPos[Ref],
			`SELECT m.id, m.company_id FROM messages m WHERE m.id = ANY($1) AND m.phone_number = $2 AND `+decided+` ORDER BY m.id FOR UPDATE`, ids, string(number))
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
		b := &pgx.Batch{}
		b.Queue(forgetReferences, final)
		receipts.QueueObscure(b, final)
		b.Queue(`UPDATE messages SET body = '', client_reference = NULL, phone_number = `+obscured+` WHERE id = ANY($1) AND `+plainNumber, final).Exec(func(tag pgconn.CommandTag) error {
			done.Messages = tag.RowsAffected()
			return nil
		})
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		done.Pending = int64(len(ids)) - done.Messages
		return refilter(ctx, tx, final)
	})
	if err != nil {
		return Erased{}, fmt.Errorf("erasing %d messages: %w", len(ids), err)
	}
	return done, nil
}

// EraseReferences forgets which references long messages to a number had. Do so when
// none is pending.
func (s *Store) EraseReferences(ctx context.Context, number sms.Number) error {
	if _, err := s.pool.Exec(ctx, `DELETE FROM concat_refs WHERE phone_number = $1`, string(number)); err != nil {
		return fmt.Errorf("deleting the references of a number: %w", err)
	}
	return nil
}
