package webhooks

import (
	"context"
	"strconv"
	"sync"
)

// changes collects the companies whose endpoints changed, for Run.
type changes struct {
	mu        sync.Mutex
	companies map[int64]bool
	all       bool
}

// maxChanges is how many companies are remembered; beyond that, all endpoints are read again.
const maxChanges = 10_000

func (c *changes) add(company int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.companies == nil {
		c.companies = make(map[int64]bool)
	}
	c.companies[company] = true
	if len(c.companies) > maxChanges {
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

// EndpointChanged makes Run read a company's endpoint again before its next call. It
// is the callback of a notice; a key that is not a company id means all endpoints. It
// never blocks.
func (w *Webhooks) EndpointChanged(key string) {
	if id, err := strconv.ParseInt(key, 10, 64); err == nil {
		w.changes.add(id)
	} else {
		w.changes.addAll()
	}
	w.Kick()
}

// reloadChanged reads the changed endpoints again. An endpoint that was switched off
// gets no more calls; one that was switched on may have due deliveries.
func (d *deliverer) reloadChanged(ctx context.Context) error {
	changed, all := d.changes.take()
	if len(changed) == 0 && !all {
		return nil
	}
	d.dueChanged.Store(true)
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
