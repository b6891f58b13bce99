// Package numberfilter has the filters by which a search finds the messages to a number.
package numberfilter

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/sms"
)

// Store has the filters of one database.
type Store struct {
	pool *pgxpool.Pool
}

// New returns the store of pool's database.
func New(pool *pgxpool.Pool) *Store { return &Store{pool: pool} }

// A search by number has no index: numbers are not in the order of time, so each new message would write to another
// page of it. With a million messages that costs 90 bytes of WAL a message at best, up to 2,200 after a checkpoint; a
// message's whole life takes 1,500.
//
// Instead each chunk of ids gets a Bloom filter, once and in the background, when it is complete: four bytes a message.
// A search skips chunks whose filters exclude the number, and reads the others and those without a filter: a late
// filter costs time only.
const (
	Chunk        = 10_000 // ids; 00203_messages.sql names it too
	filterBlock  = 32     // bytes; all bits of a number are in one block
	filterBlocks = 1_250  // 16 bits for each of two keys of an id: one in a thousand absent numbers passes
	filterProbes = 8      // bits of a key
	filtersRead  = 1_000  // by one search: ten million ids
)

// AllCompanies is the company of the keys for searches over all companies.
const AllCompanies sms.CompanyID = 0

// filterKey returns the place of a company's number in a filter: the byte at which its block begins, and its bits
// there.
func filterKey(company sms.CompanyID, number sms.Number) (offset int, bits [filterProbes]byte) {
	sum := sha256.Sum256([]byte(strconv.FormatInt(int64(company), 10) + string(number)))
	offset = int(binary.BigEndian.Uint32(sum[:4])%filterBlocks) * filterBlock
	copy(bits[:], sum[4:])
	return offset, bits
}

// addTo adds a company's number to a filter.
func addTo(filter []byte, company sms.CompanyID, number sms.Number) {
	offset, bits := filterKey(company, number)
	for _, bit := range bits {
		filter[offset+int(bit/8)] |= 1 << (bit % 8)
	}
}

// passes reports whether a block has all the bits. An empty filter's block has none.
func passes(block []byte, bits [filterProbes]byte) bool {
	for _, bit := range bits {
		if int(bit/8) >= len(block) || block[bit/8]&(1<<(bit%8)) == 0 {
			return false
		}
	}
	return true
}

// FilterNumbers makes the filter of the oldest complete chunk without one, and returns whether there was one. Several
// processes take turns.
func (s *Store) FilterNumbers(ctx context.Context) (made bool, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := Lock(ctx, tx); err != nil {
			return err
		}
		// A message of the chunk that is not visible yet drew its id before the first one after the chunk, and is
		// recorded at most a minute later, unless its transaction hangs.
		var chunk int64
		err := tx.QueryRow(ctx, `
			SELECT next.chunk FROM (
				SELECT coalesce((SELECT max(chunk) + 1 FROM number_filters), (SELECT id / $1 FROM messages ORDER BY id
					LIMIT 1)) AS chunk
			) next, LATERAL (SELECT created_at FROM messages WHERE id >= (next.chunk + 1) * $1 ORDER BY id LIMIT 1) behind
			WHERE behind.created_at < now() - $2::interval AND NOT EXISTS (
				SELECT FROM pg_stat_activity WHERE datname = current_database() AND backend_xid IS NOT NULL
					AND xact_start < behind.created_at + $2::interval)`, Chunk, messages.Skew).Scan(&chunk)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		filter, err := filterOf(ctx, tx, chunk)
		if err != nil {
			return err
		}
		made = true
		_, err = tx.Exec(ctx, `INSERT INTO number_filters (chunk, bits) VALUES ($1, $2)`, chunk, filter)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("making the filter of a chunk's numbers: %w", err)
	}
	return made, nil
}

// Lock waits, a fraction of a second, for the exclusive right to make filters, until tx ends.
func Lock(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('number filters', 0))`)
	return err
}

// filterOf returns the filter of a chunk's numbers, without obscured ones.
func filterOf(ctx context.Context, tx pgx.Tx, chunk int64) (filter []byte, err error) {
	filter = []byte{}
	var company sms.CompanyID
	var number sms.Number
	err = postgres.Each(ctx, tx, "reading the numbers of a chunk", []any{&company, &number}, func() error {
		if number.IsObscured() {
			return nil
		}
		if len(filter) == 0 {
			filter = make([]byte, filterBlocks*filterBlock)
		}
		addTo(filter, company, number)
		addTo(filter, AllCompanies, number)
		return nil
	}, `SELECT DISTINCT company_id, phone_number FROM messages WHERE id >= $1 AND id < $2`, chunk*Chunk, (chunk+1)*Chunk)
	return filter, err
}

// Refilter makes the existing filters of the messages' chunks again: the old ones would reveal the numbers. The caller
// has locked the filters.
func Refilter(ctx context.Context, tx pgx.Tx, ids []int64) error {
	chunks, err := postgres.All(ctx, tx, "looking for filters", pgx.RowTo[int64],
		`SELECT chunk FROM number_filters WHERE chunk = ANY(ARRAY(SELECT DISTINCT id / $2 FROM unnest($1::bigint[]) id))`,
		ids, Chunk)
	if err != nil {
		return err
	}
	for _, chunk := range chunks {
		filter, err := filterOf(ctx, tx, chunk)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE number_filters SET bits = $2 WHERE chunk = $1`, chunk, filter); err != nil {
			return err
		}
	}
	return nil
}

// QueuePurge deletes the filters of chunks whose messages are all deleted. Filters are made after the newest one, which
// stays.
func QueuePurge(b *pgx.Batch) {
	b.Queue(`DELETE FROM number_filters WHERE chunk < (SELECT up_to FROM sweeps WHERE name = 'purged') / $1
		AND chunk < (SELECT max(chunk) FROM number_filters)`, Chunk)
}

// Skip returns the id below which a search for a company's messages to a number may begin, instead of before: the
// filters exclude the messages between. Ids from floor down have filters: a search that arrives there calls Skip again.
// floor is 0 when it is there, or when there are no filters.
func (s *Store) Skip(ctx context.Context, company sms.CompanyID, number sms.Number, before int64) (begin, floor int64,
	err error) {
	fail := func(err error) (int64, int64, error) {
		return 0, 0, fmt.Errorf("reading the filters of numbers: %w", err)
	}
	if before <= 0 {
		return before, 0, nil
	}
	top := (before - 1) / Chunk
	var highest int64
	err = s.pool.QueryRow(ctx, `SELECT coalesce((SELECT chunk FROM number_filters WHERE chunk <= $1 ORDER BY chunk DESC
		LIMIT 1), -1)`, top).Scan(&highest)
	if err != nil {
		return fail(err)
	}
	if highest < top { // a chunk without a filter is read
		return before, (highest + 1) * Chunk, nil
	}
	offset, bits := filterKey(company, number)
	type block struct {
		Chunk int64
		Bits  []byte
	}
	blocks, err := postgres.All(ctx, s.pool, "reading filters", pgx.RowToStructByPos[block],
		`SELECT chunk, substring(bits FROM $2 FOR $3) FROM number_filters WHERE chunk <= $1 ORDER BY chunk DESC LIMIT $4`,
		top, offset+1, filterBlock, filtersRead)
	if err != nil {
		return fail(err)
	}
	for i, b := range blocks {
		if b.Chunk != top-int64(i) || passes(b.Bits, bits) {
			break
		}
		before = b.Chunk * Chunk
	}
	return before, 0, nil
}
