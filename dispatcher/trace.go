package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/links"
	"intumwa/internal/postgres"
)

// ErrNotHeld is returned for a link that another process, or none, holds.
var ErrNotHeld = errors.New("the link is not held by this process")

// holder returns the error that names a link's holder.
func holder(ctx context.Context, db postgres.DB, link string) error {
	var name string
	err := db.QueryRow(ctx, `SELECT coalesce(d.name, '') FROM links LEFT JOIN leases ON leases.name = '`+core.LinkLease+
		`' || links.name
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

// linkBinds are the binds of the running links, by link.
type linkBinds struct {
	mu     sync.Mutex
	byLink map[string]*links.Bind
}

// set registers the bind of a running link; nil removes it.
func (b *linkBinds) set(link string, bind *links.Bind) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if bind == nil {
		delete(b.byLink, link)
		return
	}
	b.byLink[link] = bind
}

// get returns the bind of a link that runs in this process, or nil.
func (b *linkBinds) get(link string) *links.Bind {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.byLink[link]
}
