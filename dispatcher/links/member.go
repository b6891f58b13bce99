package links

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intumwa/dispatcher/core"
	"intumwa/dispatcher/setup"
)

// Member is this process among the dispatchers of one database. It holds the process's leases,
// and a link worker for each configured link whose lease it holds. Every heartbeat it requests
// the leases of its configured links and reports the state of its links (linktable.go).
type Member struct {
	*core.Leases
	carriers     func() []*core.Carrier // the configured ones
	newWorker    func(*core.Carrier, *setup.Link) (*Worker, error)
	GivenUpTotal *prometheus.CounterVec
	Wake         chan struct{} // heartbeat now: the configuration or another dispatcher changed, or a link can be given up

	// Only run uses these; by link name.
	Workers map[string]*Worker
	minutes minutes              // recent traffic of the links
	givenUp map[string]time.Time // until when this process leaves links to the others
	Since   time.Time            // when the configured links were announced
}

// NewMember returns a member without links.
func NewMember(l *core.Leases, carriers func() []*core.Carrier, newWorker func(*core.Carrier, *setup.Link) (
	*Worker, error)) *Member {
	return &Member{Leases: l, carriers: carriers, newWorker: newWorker, Workers: make(map[string]*Worker),
		minutes: make(minutes),
		Wake:    make(chan struct{}, 1), givenUp: make(map[string]time.Time)}
}

// Kick causes a heartbeat at once. It never blocks.
func (m *Member) Kick() { core.Signal(m.Wake) }

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
func (m *Member) wishes() map[string]wantedLink {
	wishes := map[string]wantedLink{}
	for _, c := range m.carriers() {
		config := c.Config()
		for i := range config.Links {
			wishes[config.Links[i].Name] = wantedLink{c, &config.Links[i]}
		}
	}
	return wishes
}
