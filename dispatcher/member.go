package dispatcher

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/setup"
)

// member is this process among the dispatchers of one database. It holds the process's leases,
// and a link worker for each configured link whose lease it holds. Every heartbeat it requests
// the leases of its configured links and reports the state of its links (linktable.go).
type member struct {
	*core.Leases
	carriers     func() []*core.Carrier // the configured ones
	newWorker    func(*core.Carrier, *setup.Link) (*linkWorker, error)
	givenUpTotal *prometheus.CounterVec
	wake         chan struct{} // heartbeat now: the configuration or another dispatcher changed, or a link can be given up

	// Only run uses these; by link name.
	workers map[string]*linkWorker
	minutes minutes              // recent traffic of the links
	givenUp map[string]time.Time // until when this process leaves links to the others
	since   time.Time            // when the configured links were announced
}

// newMember returns a member without links.
func newMember(l *core.Leases, carriers func() []*core.Carrier, newWorker func(*core.Carrier, *setup.Link) (*linkWorker, error)) *member {
	return &member{Leases: l, carriers: carriers, newWorker: newWorker, workers: make(map[string]*linkWorker), minutes: make(minutes),
		wake: make(chan struct{}, 1), givenUp: make(map[string]time.Time)}
}

// kick causes a heartbeat at once. It never blocks.
func (m *member) kick() { core.Signal(m.wake) }

// wantedLink is a link as configured.
type wantedLink struct {
	carrier *core.Carrier
	link    *setup.Link
}

// leasedLinks are the links whose leases this process has.
type leasedLinks map[string]linkOrder

// linkOrder is what operators have ordered for a link.
type linkOrder struct {
	paused  bool
	retired bool // its carrier is
}

// wishes returns the configured links by name.
func (m *member) wishes() map[string]wantedLink {
	wishes := map[string]wantedLink{}
	for _, c := range m.carriers() {
		config := c.Config()
		for i := range config.Links {
			wishes[config.Links[i].Name] = wantedLink{c, &config.Links[i]}
		}
	}
	return wishes
}
