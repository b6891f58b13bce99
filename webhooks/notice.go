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

// heed reads the endpoints again that were changed. One that is switched off
// gets no more calls: what was taken for it and is not under way is handed back.
func (w *worker) heed(ctx context.Context) error {
	changed, all := w.changes.take()
	if len(changed) == 0 && !all {
		return nil
	}
	var companies []int64
	w.mu.Lock()
	for company := range w.lanes {
		if all || changed[company] {
			companies = append(companies, company)
		}
	}
	w.mu.Unlock()
	if len(companies) == 0 {
		return nil
	}
	current, err := w.endpoints(ctx, companies)
	if err != nil {
		w.changes.addAll()
		return err
	}
	if back := w.reaim(companies, current); len(back) > 0 {
		if err := w.release(ctx, back); err != nil {
			return err // their leases run out
		}
	}
	return nil
}

// reaim gives the lanes of companies what is stored now, and answers the ids of
// what waits in lanes that may call no more.
func (w *worker) reaim(companies []int64, current []due) (back []int64) {
	active := make(map[int64]due, len(current))
	for _, d := range current {
		active[d.company] = d
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, company := range companies {
		l := w.lanes[company]
		if d, ok := active[company]; ok {
			w.aim(l, d)
			w.queue(l)
			w.start(l)
			continue
		}
		l.target = nil
		back = append(back, l.handBack()...)
	}
	return back
}
