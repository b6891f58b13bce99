package exports

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/postgres"
	"intumwa/sms"
)

// Get returns a company's finished file, an administrator's or its own; else [ErrNotFound].
func (e *Exports) Get(ctx context.Context, company sms.CompanyID, operators bool, id int64) (Export, error) {
	found, err := postgres.All(ctx, e.pool, "looking up an export", scan, `SELECT `+columns+` FROM exports
		WHERE id = $1 AND company_id = $2 AND operators = $3 AND expires_at > now() AND done_at IS NOT NULL AND gone = ''`,
		id, int64(company), operators)
	switch {
	case err != nil:
		return Export{}, err
	case len(found) == 0:
		return Export{}, ErrNotFound
	}
	return found[0], nil
}

// Open returns the content of a finished file. It reads one piece of 256 KiB at a time, each by a call of within, and
// keeps the last one. A read fails with [ErrNotFound] once the file is deleted.
func (e *Exports) Open(ctx context.Context, x Export, within func(read func() error) error) io.ReadSeeker {
	return &file{n: -1, size: x.Size, read: func(n int64) (content []byte, err error) {
		err = within(func() error {
			err := e.pool.QueryRow(ctx, `SELECT content FROM export_pieces WHERE export_id = $1 AND n = $2`, x.ID, n).Scan(
				&content)
			if errors.Is(err, pgx.ErrNoRows) {
				return ErrNotFound
			}
			if err != nil {
				return fmt.Errorf("reading export %d: %w", x.ID, err)
			}
			return nil
		})
		return content, err
	}}
}

// file reads pieces in order or from any position.
type file struct {
	read    func(n int64) ([]byte, error)
	size    int64
	at      int64
	n       int64 // the piece in content; -1: none
	content []byte
}

// Read implements io.Reader.
func (f *file) Read(p []byte) (int, error) {
	if f.at >= f.size {
		return 0, io.EOF
	}
	if n := f.at / pieceSize; n != f.n {
		content, err := f.read(n)
		if err != nil {
			return 0, err
		}
		f.n, f.content = n, content
	}
	from := f.at % pieceSize
	if from >= int64(len(f.content)) {
		return 0, io.ErrUnexpectedEOF
	}
	copied := copy(p, f.content[from:])
	f.at += int64(copied)
	return copied, nil
}

// Seek implements io.Seeker.
func (f *file) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.at
	case io.SeekEnd:
		offset += f.size
	}
	if offset < 0 {
		return 0, errors.New("seeking before the beginning")
	}
	f.at = offset
	return offset, nil
}
