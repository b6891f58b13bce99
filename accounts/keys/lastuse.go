package keys

import (
	"context"
	"fmt"
	"sync"
	"time"

	"intumwa/accounts"
)

const lastUseInterval = time.Minute

// lastUse collects when tokens were last used; Run writes it to Postgres.
type lastUse struct {
	mu sync.Mutex
	at map[int64]time.Time
}

func newLastUse() *lastUse { return &lastUse{at: make(map[int64]time.Time)} }

func (l *lastUse) add(tokenID int64, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at[tokenID] = at
}

func (l *lastUse) take() (ids []int64, at []time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, t := range l.at {
		ids = append(ids, id)
		at = append(at, t)
	}
	clear(l.at)
	return ids, at
}

// Run writes the tokens' last use to Postgres once a minute and once at the end. It blocks until ctx ends. If Postgres
// is unreachable, that minute's data is lost; it is for display only.
func (a *Holders) Run(ctx context.Context) error {
	tick := time.NewTicker(lastUseInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			final, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			a.writeLastUse(final)
			return nil
		case <-tick.C:
			a.writeLastUse(ctx)
		}
	}
}

func (a *Holders) writeLastUse(ctx context.Context) {
	if err := a.storeLastUse(ctx); err != nil {
		a.opts.Log.Warn("last use of tokens could not be stored", "event", "token_use_not_stored", "error", err)
	}
}

func (a *Holders) storeLastUse(ctx context.Context) error {
	ids, at := a.lastUse.take()
	if len(ids) == 0 {
		return nil
	}
	_, err := accounts.Exec(ctx, a.pool, fmt.Sprintf("writing the last use of %d tokens", len(ids)), `
		update api_tokens t set last_used_at = u.at
		from unnest($1::bigint[], $2::timestamptz[]) as u (id, at)
			join (select id from api_tokens where id = any($1) order by id for no key update skip locked) free using (id)
		where t.id = u.id and (t.last_used_at is null or t.last_used_at < u.at)`, ids, at)
	return err
}
