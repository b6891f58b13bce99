package dispatcher

import (
	"sync"
	"sync/atomic"

	"intumwa/messages/receipts"
)

// carrier is a carrier at work. Reload may replace its configuration.
type carrier struct {
	name      string
	conf      atomic.Pointer[Carrier]
	unmatched quota    // receipts that match nothing
	handsets  quota    // MOs
	words     words    // unknown states of receipts
	standIns  []string // the carriers that it fails over to now; only failover uses it, for the log
}

// config returns the present configuration.
func (c *carrier) config() *Carrier { return c.conf.Load() }

// matcher returns the matcher of the carrier's receipts.
func (c *carrier) matcher() *receipts.Matcher { return receipts.New(c.name, c.config().IDFormat) }

// carriers are the carriers that this process has, or has had since its start.
type carriers struct {
	mu     sync.Mutex
	all    map[string]*carrier
	active []*carrier // in the order of the configuration
}

// running returns the configured carriers.
func (c *carriers) running() []*carrier {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.active
}

// set applies a checked configuration and returns the carriers that are new.
func (c *carriers) set(configs []Carrier) (added []*carrier) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.active = c.active[:0:0]
	for i := range configs {
		one := c.all[configs[i].Name]
		if one == nil {
			one = &carrier{name: configs[i].Name}
			c.all[one.name] = one
			added = append(added, one)
		}
		one.conf.Store(&configs[i])
		c.active = append(c.active, one)
	}
	return added
}
