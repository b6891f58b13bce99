package stories

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
	"time"

	"intumwa/tools/carriersim"
)

// carrier is a carrier of a scene: its behaviour and its configuration.
type carrier struct {
	name   string             // lumitel when empty
	prefix string             // 61, 71, 77, … by position when empty
	sim    carriersim.Options // its behaviour
	config tree               // of the carrier in the configuration
	link   tree               // of each of its links
	links  int                // 1 when zero
	own    bool               // a system_id per link; the carrier accepts any
}

// smsc is a running carrier.
type smsc struct {
	*carriersim.Carrier
	w       *world
	carrier carrier
	prefix  string
	address string
	account string
	secret  string
	binds   int // expected binds per gateway

	end context.CancelFunc // nil: closed
	out chan error
}

func openCarrier(w *world, i int, c carrier) *smsc {
	w.t.Helper()
	if c.name == "" {
		c.name = []string{"lumitel", "leo", "onatel"}[i]
	}
	if c.prefix == "" {
		c.prefix = []string{"61", "71", "77"}[i]
	}
	c.links = max(c.links, 1)
	s := &smsc{w: w, carrier: c, prefix: c.prefix, account: "intumwa", secret: word()[:8], binds: c.links}
	if c.link["bind"] == "transmitter_receiver" {
		s.binds *= 2
	}
	if c.sim.Name = c.name; !c.own {
		c.sim.SystemID, c.sim.Password = s.account, s.secret
	}
	s.Carrier = carriersim.New(c.sim)
	w.secret(s.secret)
	w.t.Cleanup(s.close)
	s.open()
	return s
}

// open makes the carrier listen at its address.
func (s *smsc) open() {
	s.w.t.Helper()
	at := cmp.Or(s.address, "127.0.0.1:0")
	var listener net.Listener
	s.w.eventually(10*time.Second, "carrier "+s.Name()+" listens", func() (ok bool) {
		var err error
		listener, err = net.Listen("tcp", at)
		if err != nil && !errors.Is(err, syscall.EADDRINUSE) {
			s.w.t.Fatalf("carrier %s: %v", s.Name(), err)
		}
		return err == nil
	})
	s.address = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	out := make(chan error, 1)
	s.end, s.out = cancel, out
	go func() { out <- s.Serve(ctx, listener) }()
}

// close stops the carrier: its connections break and its port is closed.
func (s *smsc) close() {
	if s.end == nil {
		return
	}
	s.end()
	if err := <-s.out; err != nil {
		s.w.t.Errorf("carrier %s: %v", s.Name(), err)
	}
	s.end = nil
}

// section is the carrier's configuration.
func (s *smsc) section() tree {
	links := make([]tree, s.carrier.links)
	for i := range links {
		links[i] = tree{
			"name": s.Name() + "-" + strconv.Itoa(i+1), "address": s.address,
			"system_id": s.account, "password": s.secret, "tps": 0,
		}.over(s.carrier.link)
		if s.carrier.own {
			links[i]["system_id"] = s.Name() + "-" + strconv.Itoa(i+1)
		}
	}
	return tree{"name": s.Name(), "prefixes": []string{s.prefix}, "links": links}.over(s.carrier.config)
}

// left returns the accepted segments once the carrier has read everything that killed
// gateways had written and has no bind.
func (s *smsc) left() (accepted uint64) {
	s.w.t.Helper()
	s.w.eventually(finalWithin, "no bind is left at "+s.Name(), func() bool { return s.Stats().Sessions == 0 })
	return s.Stats().Accepted
}

// accepted lists the accepted submit_sm in order.
func (s *smsc) accepted() []carriersim.Submit {
	var taken []carriersim.Submit
	for _, submit := range s.Submits() {
		if submit.Accepted {
			taken = append(taken, submit)
		}
	}
	return taken
}

// segmentsOf lists the accepted submit_sm to one recipient.
func (s *smsc) segmentsOf(number string) []carriersim.Submit {
	var segments []carriersim.Submit
	for _, submit := range s.accepted() {
		if "+"+submit.Destination.Addr == number {
			segments = append(segments, submit)
		}
	}
	return segments
}

// shown is the text on the recipient's handset.
func (s *smsc) shown(number string) []carriersim.Message {
	var messages []carriersim.Message
	for _, m := range s.Messages() {
		if "+"+m.Destination == number {
			messages = append(messages, m)
		}
	}
	return messages
}

func (s *smsc) String() string {
	stats := s.Stats()
	return fmt.Sprintf("%s: %d submits, %d accepted, %d duplicates, %d receipts, %d confirmed, %d redelivered, %d "+
		"waiting, %d binds, %d unbinds",
		s.Name(), stats.Submits, stats.Accepted, stats.Duplicates, stats.Receipts, stats.Confirmed, stats.Redelivered,
		stats.ReceiptsWaiting, stats.Binds, stats.Unbinds)
}
