package billing

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"intumwa/internal/testenv"
)

// A form that is sent several times at once grants its credits once.
func TestGrantOnce(t *testing.T) {
	pool := testenv.Pool(t)
	if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return Open(t.Context(), tx, 7) }); err != nil {
		t.Fatal(err)
	}
	grant := func(key byte, amount int64) error {
		return pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			_, err := Adjust(t.Context(), tx, Adjustment{Company: 7, Amount: amount, Note: "bought", Once: &[16]byte{key}})
			return err
		})
	}
	// A refused grant leaves its key free.
	if err := grant(1, -5); !errors.Is(err, ErrNegative) {
		t.Fatal(err)
	}
	var done, before atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			switch err := grant(1, 100); {
			case err == nil:
				done.Add(1)
			case errors.Is(err, ErrGranted):
				before.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if err := grant(2, 11); err != nil {
		t.Error(err)
	}
	if credits, err := New(pool).Balance(t.Context(), 7); err != nil || credits != 111 || done.Load() != 1 ||
		before.Load() != 7 {
		t.Errorf("%d credits (%v) after %d grants and %d refused", credits, err, done.Load(), before.Load())
	}
}
