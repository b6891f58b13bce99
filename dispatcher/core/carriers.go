package core

import (
	"sync"
	"sync/atomic"

	"intumwa/dispatcher/setup"
	"intumwa/messages/receipts"
)

// Carrier is a carrier at work. Reload may replace its configuration.
type Carrier struct {
	Name      string
	Conf      atomic.Pointer[setup.Carrier]
	Unmatched Quota    // receipts that match nothing
	Handsets  Quota    // MOs
	Words     words    // unknown states of receipts
	StandIns  []string // the carriers that it fails over to now; only failover uses it, for the log
}

// Config returns the present configuration.
func (c *Carrier) Config() *setup.Carrier { return c.Conf.Load() }

// Matcher returns the matcher of the carrier's receipts.
func (c *Carrier) Matcher() *receipts.Matcher { return receipts.New(c.Name, c.Config().IDFormat) }

// Carriers are the carriers that this process has, or has had since its start.
type Carriers struct {
	mu     sync.Mutex
	all    map[string]*Carrier
	active []*Carrier // in the order of the configuration
}

// NewCarriers returns no carriers yet.
func NewCarriers() *Carriers { return &Carriers{all: make(map[string]*Carrier)} }

// running returns the configured carriers.
func (c *Carriers) running() []*Carrier {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.active
}

// Set applies a checked configuration and returns the carriers that are new.
func (c *Carriers) Set(configs []setup.Carrier) (added []*Carrier) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.active = c.active[:0:0]
	for i := range configs {
		one := c.all[configs[i].Name]
		if one == nil {
			one = &Carrier{Name: configs[i].Name}
			c.all[one.Name] = one
			added = append(added, one)
		}
		one.Conf.Store(&configs[i])
		c.active = append(c.active, one)
	}
	return added
}
