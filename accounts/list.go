package accounts

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Users lists users in the order of their ids, at most limit of them, from the first after that id.
func (a *Accounts) Users(ctx context.Context, after int64, limit int) ([]User, error) {
	rows, err := a.pool.Query(ctx, `select `+userColumns+` from users where id > $1 order by id limit $2`, after, limit)
	if err != nil {
		return nil, fmt.Errorf("listing users: %w", err)
	}
	users, err := pgx.CollectRows(rows, pgx.RowToStructByPos[User])
	if err != nil {
		return nil, fmt.Errorf("listing users: %w", err)
	}
	return users, nil
}

// Tokens lists everybody's tokens, revoked ones too, in the order of their ids, at most limit of them, from the first
// after that id.
func (a *Accounts) Tokens(ctx context.Context, after int64, limit int) ([]Token, error) {
	rows, err := a.pool.Query(ctx,
		`select id, user_id, name, created_at, last_used_at, revoked_at from api_tokens where id > $1 order by id limit $2`, after, limit)
	if err != nil {
		return nil, fmt.Errorf("listing tokens: %w", err)
	}
	tokens, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Token])
	if err != nil {
		return nil, fmt.Errorf("listing tokens: %w", err)
	}
	return tokens, nil
}

// OwnedSender is a sender and the company that it belongs to.
type OwnedSender struct {
	Sender

	CompanyID int64
}

const ownedSenderColumns = `id, name, country, approved, company_id`

func scanOwnedSender(row pgx.CollectableRow) (s OwnedSender, err error) {
	err = row.Scan(&s.ID, &s.Name, &s.Country, &s.Approved, &s.CompanyID)
	return s, err
}

// Senders lists everybody's senders in the order of their ids, at most limit of them, from the first after that id.
func (a *Accounts) Senders(ctx context.Context, after int64, limit int) ([]SenderRequest, error) {
	return a.senderRequests(ctx, `select `+senderRequestColumns+` from senders where id > $1 order by id limit $2`, after, limit)
}

// SenderByID is one sender, e.g. to see whose it is before it is approved.
func (a *Accounts) SenderByID(ctx context.Context, id int64) (OwnedSender, error) {
	rows, err := a.pool.Query(ctx, `select `+ownedSenderColumns+` from senders where id = $1`, id)
	if err != nil {
		return OwnedSender{}, fmt.Errorf("reading sender %d: %w", id, err)
	}
	s, err := pgx.CollectExactlyOneRow(rows, scanOwnedSender)
	if errors.Is(err, pgx.ErrNoRows) {
		return OwnedSender{}, &mistake{ErrNotFound, fmt.Sprintf("there is no sender with id %d", id)}
	}
	if err != nil {
		return OwnedSender{}, fmt.Errorf("reading sender %d: %w", id, err)
	}
	return s, nil
}
