package dispatcher

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"intumwa/smpp"
)

// ErrNotHeld is returned for a link that another process, or none, holds.
var ErrNotHeld = errors.New("the link is not held by this process")

// Trace passes the redacted PDUs of a link that this process holds to show,
// until ctx ends or show returns an error, which it returns (smpp.Link.Trace).
// For a link held elsewhere it returns ErrNotHeld with the name of the holder,
// for one that no process ever announced ErrNoLink.
func (d *Dispatcher) Trace(ctx context.Context, link string, show func(smpp.TracedPDU) error) error {
	d.mu.Lock()
	bind := d.binds[link]
	d.mu.Unlock()
	if bind == nil {
		return d.holder(ctx, link)
	}
	return bind.Trace(ctx, show)
}

// setBind registers the bind of a running link; nil removes it.
func (d *Dispatcher) setBind(link string, b *linkBind) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if b == nil {
		delete(d.binds, link)
		return
	}
	d.binds[link] = b
}

// holder returns the error that names a link's holder.
func (d *Dispatcher) holder(ctx context.Context, link string) error {
	var name string
	err := d.pool.QueryRow(ctx, `SELECT coalesce(d.name, '') FROM links LEFT JOIN leases ON leases.name = '`+linkLease+`' || links.name
		LEFT JOIN dispatchers d ON d.id = leases.holder WHERE links.name = $1`, link).Scan(&name)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("%s: %w", link, ErrNoLink)
	case err != nil:
		return fmt.Errorf("asking who holds %s: %w", link, err)
	case name == "":
		return fmt.Errorf("%s: %w, nor by another", link, ErrNotHeld)
	}
	return fmt.Errorf("%s: %w but by %s", link, ErrNotHeld, name)
}
