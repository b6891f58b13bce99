package dispatcher_test

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"intumwa/dispatcher"
	"intumwa/tools/carriersim"
)

// way is one dispatcher's way to a carrier that two reach by ways of their own: what comes to
// its address goes on to the carrier's.
type way struct {
	*testing.T
	carrier, address string
	registry         *prometheus.Registry
	id               int // the dispatcher's

	mu       sync.Mutex
	listener net.Listener // nil: it is cut
	conns    []net.Conn
	open     sync.WaitGroup
}

func newWay(w *world, carrier *sim) *way {
	y := &way{T: w.T, carrier: carrier.address, address: "127.0.0.1:0"}
	y.heal()
	w.Cleanup(y.cut)
	return y
}

// cut ends all that goes this way, and refuses more.
func (y *way) cut() {
	y.mu.Lock()
	if y.listener != nil {
		_ = y.listener.Close()
	}
	y.listener = nil
	for _, conn := range y.conns {
		_ = conn.Close()
	}
	y.conns = nil
	y.mu.Unlock()
	y.open.Wait()
}

// heal lets all through.
func (y *way) heal() {
	y.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(y.Context(), "tcp", y.address)
	for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); <-time.After(10 * time.Millisecond) { // another may have it for a moment
		listener, err = config.Listen(y.Context(), "tcp", y.address)
	}
	if err != nil {
		y.Fatal(err)
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	y.listener, y.address = listener, listener.Addr().String()
	y.open.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			y.lead(listener, from)
		}
	})
}

// lead connects who has come with the carrier.
func (y *way) lead(listener net.Listener, from net.Conn) {
	to, err := (&net.Dialer{Timeout: time.Minute}).Dial("tcp", y.carrier)
	if err != nil {
		_ = from.Close()
		return
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.listener != listener { // it was cut meanwhile
		_, _ = from.Close(), to.Close()
		return
	}
	y.conns = append(y.conns, from, to)
	for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
		y.open.Go(func() {
			_, _ = io.Copy(pair[0], pair[1])
			_, _ = pair[0].Close(), pair[1].Close()
		})
	}
}

// twoWays are two dispatchers that share a carrier's one link, each by its own way; the first
// has it.
func twoWays(w *world, o dispatcher.Options, mno *sim) (ways [2]*way) {
	w.Helper()
	for i := range ways {
		y := newWay(w, mno)
		ways[i] = y
		w.startWith(o, mno.mno(func(c *dispatcher.Carrier) { c.Links[0].Address = y.address }))
		w.until("it is there", func() bool { return w.count(`SELECT count(*) FROM dispatchers WHERE links = '{lumitel-1}'`) == i+1 })
		y.registry, y.id = w.registry, w.count(`SELECT max(id) FROM dispatchers`)
		w.awaitLink("lumitel-1", "bound")
	}
	return ways
}

func (w *world) givenUp(y *way) float64 {
	w.registry = y.registry
	return w.metric("intumwa_link_given_up_total", "link", "lumitel-1")
}

func (w *world) owner() int {
	w.Helper()
	return w.count(`SELECT coalesce(max(holder), 0) FROM leases WHERE name = 'link lumitel-1'`)
}

// TestUnreachableFromOneMachine: the carrier cannot be reached from the machine of the
// dispatcher that has the link. Another takes it, what waits is carried, and the carrier has
// one session at a time. It stays there when the first way is back, and returns when the
// second is cut.
//
// Source: rule choices 7.14.
func TestUnreachableFromOneMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mno := w.carrier(carriersim.Options{NoFates: true, MaxSessions: 1})
	ways := twoWays(w, dispatcher.Options{GiveUpAfter: time.Second, RestFirst: 9 * time.Second}, mno)
	var ids []int64
	for round := range 2 {
		from, to := ways[round%2], ways[(round+1)%2]
		if w.owner() != from.id {
			t.Fatal("another has the link")
		}
		from.cut()
		ids = append(ids, w.sendMany(20, "00")...)
		w.eventually(60*time.Second, func() bool { return w.owner() == to.id && w.linkState("lumitel-1").State == "bound" },
			func() string { return "the other has the link, bound" })
		w.await("sent", 20*time.Second, ids...)
		from.heal()
		w.stays(time.Second, "the link stays where it is bound", func() bool { return w.owner() == to.id })
		if n := w.givenUp(from); n != 1 {
			t.Errorf("the link was given up %v times from here", n)
		}
	}
	if st := mno.Stats(); st.BindRefused != 0 || st.Duplicates != 0 {
		t.Errorf("%d binds refused: one session stood beside another; %d arrived twice", st.BindRefused, st.Duplicates)
	}
	w.clean(mno)
}
