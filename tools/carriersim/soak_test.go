package carriersim

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// TestSoak has clients come, submit and break off at random moments under
// faults: nothing is owed at the end but what was told, and nothing is told twice
// to somebody who answered.
func TestSoak(t *testing.T) {
	c, addr := serve(t, Options{
		NoFates: true, ReceiptDelay: time.Millisecond, AckTimeout: 50 * time.Millisecond, ReceiptWindow: 8, MaxSessions: 1000,
		Faults: Faults{RespJitter: 2 * time.Millisecond, RefuseRatio: 0.1, ReceiptCopies: 2},
	})
	var clients sync.WaitGroup
	for n := range 8 {
		clients.Go(func() {
			random := rand.New(rand.NewPCG(uint64(n), 1))
			for round := range 10 {
				breakOff(t, addr, random, n*100+round)
			}
		})
	}
	clients.Wait()
	k := bound(t, addr)
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		for k.next().odd == "" {
		}
	}()
	until(t, "all is read of those that broke off", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.stats.Connections == 8*10+1 && len(c.sessions) == 1
	})
	until(t, "every receipt answered", func() bool { return c.Stats().ReceiptsWaiting == 0 })
	s := c.Stats()
	if s.Confirmed+s.Discarded != 2*s.Accepted || s.Accepted+s.Refused[Throttled] != s.Submits {
		t.Errorf("%+v", s)
	}
	if s.Redelivered == 0 || s.Violations > 0 {
		t.Errorf("%+v %+v", s, c.Violations())
	}
	if got := len(c.Messages()); uint64(got) != s.Accepted {
		t.Errorf("%d messages of %d accepted", got, s.Accepted)
	}
	c.DropAll()
	<-stop
}

// breakOff binds, submits 20 and closes after a random number of PDUs.
func breakOff(t *testing.T, addr string, random *rand.Rand, n int) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = conn.Close() }()
	k := &client{t: t, conn: conn}
	k.bind(9, "demo", "demo")
	r := bufio.NewReader(conn)
	for i := range 20 {
		k.submit(usual(fmt.Sprintf("2577%07d", n), fmt.Sprint(i)))
	}
	_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	var head [16]byte
	for range random.IntN(60) {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return
		}
		if _, err := r.Discard(int(binary.BigEndian.Uint32(head[:])) - 16); err != nil {
			return
		}
		if binary.BigEndian.Uint32(head[4:]) == 5 && random.IntN(3) > 0 {
			k.write(0x80000005, 0, binary.BigEndian.Uint32(head[12:]), []byte{0})
		}
	}
}

func TestNames(t *testing.T) {
	var f IDFormat
	if err := f.UnmarshalText([]byte("hex-then-decimal")); err != nil || f != IDHexThenDecimal || f.String() != "hex-then-decimal" {
		t.Errorf("%v %v", f, err)
	}
	var a Alphabet
	if err := a.UnmarshalText([]byte("latin1")); err != nil || a != Latin1 {
		t.Errorf("%v %v", a, err)
	}
	var r ReceiptForm
	if err := r.UnmarshalText([]byte("tlv")); err != nil || r != ReceiptTLV {
		t.Errorf("%v %v", r, err)
	}
	if f.UnmarshalText([]byte("x")) == nil || a.UnmarshalText(nil) == nil || r.UnmarshalText([]byte("X")) == nil {
		t.Error("names nobody knows")
	}
}
