// Package exports makes files of all messages of a company and month. People ask for a file on a page; a process with
// the role webhooks writes it in the background; for some days any process can serve it, in any part.
//
// A file is written in steps. Each step is one transaction that stores rows and how far they reach, so a process that
// is killed leaves a file that another continues. Only a finished file is offered. Companies take turns, and a step
// rests for three times its duration: an export uses at most a quarter of one connection.
package exports

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/billing"
	"intumwa/internal/postgres"
	"intumwa/messages/lookup"
	"intumwa/messages/retention"
	"intumwa/sms"
	"intumwa/texts"
)

const (
	life      = 7 * 24 * time.Hour // of a file
	textLife  = 24 * time.Hour     // of a file with texts that a retention will delete
	kept      = 12                 // files of a company; asking for another ends the oldest
	sizeMost  = 4 << 30            // bytes of one file: 3,000,000 messages with texts have 1.2 GB
	sizeOfOne = 4 << 30            // bytes of a company's files before another one
	sizeOfAll = 16 << 30           // bytes of all files before another one; they take a third of that in PostgreSQL

	pieceSize = 256 << 10 // 00221_exports.sql names it too

	lookEvery  = 2 * time.Second
	sweepEvery = time.Minute
	again      = 10 * time.Second // after an error
)

// Errors of [Ask].
var (
	ErrRunning = errors.New("an export of the company is being written")
	ErrFull    = errors.New("the space for exports is used up")
)

// ErrNotFound means that there is no such file, or not any longer.
var ErrNotFound = errors.New("there is no such export")

// Reasons why a file has no content.
const (
	GoneErased = "erased" // a number was erased
	GoneTexts  = "texts"  // the company's texts are kept for another time now
	GoneSize   = "size"   // it exceeded 4 GiB
)

// Export is a file, or one that is being written.
type Export struct {
	ID        int64
	Company   sms.CompanyID
	Month     time.Time // midnight UTC of its first day in Burundi
	Language  string    // a tag of words
	Operators bool      // it was asked for by an administrator: numbers are obscured. Customers do not see it
	Bodies    bool      // with texts
	AskedAt   time.Time
	ExpiresAt time.Time
	Messages  int64 // rows that are written
	Size      int64 // bytes
	DoneAt    *time.Time
	Gone      string // why its content is deleted; "": it is not

	first, position, last *int64
	textsFrom             *time.Time // texts of older messages are left out
}

// Ready reports whether the file can be read.
func (x *Export) Ready() bool { return x.DoneAt != nil && x.Gone == "" }

// Percent returns how much of the month's ids is written, from 0 to 100.
func (x *Export) Percent() int {
	if x.first == nil || *x.last <= *x.first {
		return 0
	}
	return int((*x.position - *x.first) * 100 / (*x.last - *x.first))
}

const columns = `id, company_id, month, language, operators, bodies, asked_at, expires_at, messages, size, done_at,
	gone, first, position, last, texts_from`

func scan(row pgx.CollectableRow) (x Export, err error) {
	err = row.Scan(&x.ID, &x.Company, &x.Month, &x.Language, &x.Operators, &x.Bodies, &x.AskedAt, &x.ExpiresAt,
		&x.Messages, &x.Size, &x.DoneAt, &x.Gone,
		&x.first, &x.position, &x.last, &x.textsFrom)
	return x, err
}

// Exports is safe for concurrent use, in any number of processes.
type Exports struct {
	pool      *pgxpool.Pool
	lookup    *lookup.Store
	retention *retention.Store
	ledger    *billing.Ledger
	words     *texts.Texts
	texts     time.Duration // how long texts are kept as configured; 0: forever
	log       *slog.Logger
}

// New reads the texts. keep is how long messages' texts are kept, unless their company has a rule; 0: forever.
func New(pool *pgxpool.Pool, keep time.Duration, log *slog.Logger) (*Exports, error) {
	w, err := texts.Load()
	if err != nil {
		return nil, fmt.Errorf("reading the texts: %w", err)
	}
	return &Exports{pool, lookup.New(pool), retention.New(pool), billing.New(pool), w, keep, log}, nil
}

// Run writes files and deletes old ones until ctx ends.
func (e *Exports) Run(ctx context.Context) error {
	swept := time.Time{}
	for {
		if time.Since(swept) > sweepEvery {
			if err := e.Sweep(ctx); err != nil && ctx.Err() == nil {
				e.log.Warn("old exports could not be deleted; trying again", "event", "exports_not_deleted", "error", err)
			}
			swept = time.Now()
		}
		found, err := e.WriteNext(ctx)
		if err != nil && ctx.Err() == nil {
			e.log.Warn("an export could not be written further; trying again", "event", "export_not_written", "error", err)
		}
		if found && err == nil && ctx.Err() == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lookEvery):
		}
	}
}

// Sweep deletes the files whose time is over.
func (e *Exports) Sweep(ctx context.Context) error {
	if _, err := e.pool.Exec(ctx, `DELETE FROM exports WHERE expires_at <= now()`); err != nil {
		return fmt.Errorf("deleting old exports: %w", err)
	}
	// A piece that was being stored while its file was withdrawn.
	if _,
		err := e.pool.Exec(
		ctx, `DELETE FROM export_pieces p USING exports x WHERE x.id = p.export_id AND x.gone <> ''`); err != nil {
		return fmt.Errorf("deleting pieces of withdrawn exports: %w", err)
	}
	return nil
}

// List returns a company's files, the newest first: an administrator's or its own.
func (e *Exports) List(ctx context.Context, company sms.CompanyID, operators bool) ([]Export, error) {
	return postgres.All(ctx, e.pool, "listing exports", scan, `SELECT `+columns+` FROM exports
		WHERE company_id = $1 AND operators = $2 AND expires_at > now() ORDER BY id DESC LIMIT $3`, int64(company), operators,
		kept)
}
