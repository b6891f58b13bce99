package webhooks

import (
	"context"
	"strconv"
	"sync"
)

// changes are the companies whose endpoints were changed since Run last looked.
type changes struct {
	mu        sync.Mutex
	companies map[int64]bool
	all       bool
}

// most is how many are told apart; more are everybody's.
const most = 10_000

func (c *changes) add(company int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.companies == nil {
		c.companies = make(map[int64]bool)
	}
	c.companies[company] = true
	if len(c.companies) > most {
		c.all = true
	}
}

func (c *changes) addAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = true
}

func (c *changes) take() (companies map[int64]bool, all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	companies, all = c.companies, c.all
	c.companies, c.all = nil, false
	return companies, all
}

// EndpointChanged has Run read a company's endpoint again before its next call,
// after a notice that it was changed; everybody's with a key that is no company
// id. It never blocks.
func (w *Webhooks) EndpointChanged(key string) {
	if id, err := strconv.ParseInt(key, 10, 64); err == nil {
		w.changes.add(id)
	} else {
		w.changes.addAll()
	}
	w.Kick()
}

// reloadChanged reads the endpoints again that were changed. One that is
// switched off gets no more calls; one that is on again may have some due.
func (d *deliverer) reloadChanged(ctx context.Context) error {
	changed, all := d.changes.take()
	if len(changed) == 0 && !all {
		return nil
	}
	d.again.Store(true)
	var companies []int64
	d.mu.Lock()
	for company := range d.workers {
		if all || changed[company] {
			companies = append(companies, company)
		}
	}
	d.mu.Unlock()
	if err := d.reload(ctx, companies); err != nil {
		d.changes.addAll()
		return err
	}
	return nil
}
