package messages

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// A search by number has no index: the order of numbers is no order of time, so that
// each new message would write to another page of one. Beside a million messages that
// was measured as 90 bytes of the write-ahead log a message at best, and up to 2,200
// after a checkpoint, where the whole life of a message takes 1,500.
//
// So a chunk of ids gets a Bloom filter, once and in the background, when no
// message of it can come any more: four bytes a message. A search leaves out
// the chunks whose filters do not know the number, and reads the others. What
// has no filter yet is read as well, so a filter that is late costs time only.
const (
	filterChunk  = 10_000 // ids; 00203_messages.sql names it too
	filterBlock  = 32     // bytes; what a filter knows of a number lies in one of its blocks
	filterBlocks = 1_250  // 16 bits for each of two keys of an id: of a thousand numbers that a chunk lacks, it lets one pass
	filterProbes = 8      // bits of a key
	filtersRead  = 1_000  // by one search: ten million ids
)

// anybody is the company of the keys that stand for all companies together.
const anybody sms.CompanyID = 0

// filterKey returns where a filter keeps what it knows of a company's number:
// the byte at which the block begins, and the bits within it.
func filterKey(company sms.CompanyID, number sms.Number) (offset int, bits [filterProbes]byte) {
	sum := sha256.Sum256([]byte(strconv.FormatInt(int64(company), 10) + string(number)))
	offset = int(binary.BigEndian.Uint32(sum[:4])%filterBlocks) * filterBlock
	copy(bits[:], sum[4:])
	return offset, bits
}

// addTo puts a company's number into a filter.
func addTo(filter []byte, company sms.CompanyID, number sms.Number) {
	offset, bits := filterKey(company, number)
	for _, bit := range bits {
		filter[offset+int(bit/8)] |= 1 << (bit % 8)
	}
}

// passes reports whether a block has all the bits. That of an empty filter has none.
func passes(block []byte, bits [filterProbes]byte) bool {
	for _, bit := range bits {
		if int(bit/8) >= len(block) || block[bit/8]&(1<<(bit%8)) == 0 {
			return false
		}
	}
	return true
}

// FilterNumbers makes the filter of the next chunk that is complete, the oldest
// first, and returns whether there was one. Several processes make one after the other.
func (s *Store) FilterNumbers(ctx context.Context) (made bool, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := lockFilters(ctx, tx); err != nil {
			return err
		}
		// A message of the chunk that is not to be seen yet was given its id before
		// the first one behind the chunk was, and is recorded a minute later at the
		// latest, or its transaction still hangs.
		var chunk int64
		err := tx.QueryRow(ctx, `
			SELECT next.chunk FROM (
				SELECT coalesce((SELECT max(chunk) + 1 FROM number_filters), (SELECT id / $1 FROM messages ORDER BY id LIMIT 1)) AS chunk
			) next, LATERAL (SELECT created_at FROM messages WHERE id >= (next.chunk + 1) * $1 ORDER BY id LIMIT 1) behind
			WHERE behind.created_at < now() - $2::interval AND NOT EXISTS (
				SELECT FROM pg_stat_activity WHERE datname = current_database() AND backend_xid IS NOT NULL
					AND xact_start < behind.created_at + $2::interval)`, filterChunk, skew).Scan(&chunk)
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

// lockFilters waits, a fraction of a second, until nobody else makes filters, and keeps everybody else from it until tx ends.
func lockFilters(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('number filters', 0))`)
	return err
}

// filterOf makes the filter of a chunk of the numbers that are not obscured.
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
		addTo(filter, anybody, number)
		return nil
	}, `SELECT DISTINCT company_id, phone_number FROM messages WHERE id >= $1 AND id < $2`, chunk*filterChunk, (chunk+1)*filterChunk)
	return filter, err
}

// refilter makes the filters of the chunks of messages anew that have one: nobody can
// tell from them any more to which numbers the messages went. The caller has locked
// the filters.
func refilter(ctx context.Context, tx pgx.Tx, ids []int64) error {
	var chunks []int64
	for _, id := range ids {
		if chunk := id / filterChunk; !slices.Contains(chunks, chunk) {
			chunks = append(chunks, chunk)
		}
	}
	chunks, err := postgres.All(ctx, tx, "looking for filters", pgx.RowTo[int64], `SELECT chunk FROM number_filters WHERE chunk = ANY($1)`, chunks)
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

// skip returns below which id a search for a company's messages to a number
// may begin that was to begin below before: the filters know that there is none
// between. What lies from floor on down has filters: a search that comes there
// asks again. floor is 0 when it is there, or when there are no filters.
func (s *Store) skip(ctx context.Context, company sms.CompanyID, number sms.Number, before int64) (begin, floor int64, err error) {
	fail := func(err error) (int64, int64, error) {
		return 0, 0, fmt.Errorf("reading the filters of numbers: %w", err)
	}
	if before <= 0 {
		return before, 0, nil
	}
	top := (before - 1) / filterChunk
	var highest int64
	err = s.pool.QueryRow(ctx, `SELECT coalesce((SELECT chunk FROM number_filters WHERE chunk <= $1 ORDER BY chunk DESC LIMIT 1), -1)`, top).Scan(&highest)
	if err != nil {
		return fail(err)
	}
	if highest < top { // a chunk without a filter is looked through
		return before, (highest + 1) * filterChunk, nil
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
		before = b.Chunk * filterChunk
	}
	return before, 0, nil
}
