package carriersim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func says(t *testing.T, k *client, want ...string) {
	t.Helper()
	for _, w := range want {
		if said := k.next().say(t); said != w {
			t.Fatalf("%s, want %s", said, w)
		}
	}
}

func TestFaults(t *testing.T) {
	const ok, receipt = "resp ESME_ROK", "receipt DELIVRD"
	one := usual("25779000000", "a")
	quiet := one
	quiet.registered = 0
	for name, row := range map[string]struct {
		f    Faults
		play func(t *testing.T, c *Carrier, k *client)
	}{
		"refuse connections": {Faults{RefuseConnections: true}, func(t *testing.T, _ *Carrier, k *client) { says(t, k, "closed") }},
		"bind status": {Faults{BindStatus: InvalidPassword}, func(t *testing.T, c *Carrier, k *client) {
			k.bind(9, "demo", "demo")
			if p := k.next(); Status(p.status) != InvalidPassword || p.command != 0x80000009 {
				t.Errorf("%+v", p)
			}
			says(t, k, "closed")
		}},
		"bind silent": {Faults{BindSilent: true}, func(t *testing.T, _ *Carrier, k *client) {
			k.bind(9, "demo", "demo")
			k.request(0x15, nil)
			says(t, k, "alive")
		}},
		"submit status": {Faults{SubmitStatus: SystemError}, func(t *testing.T, _ *Carrier, k *client) { k.submit(one); says(t, k, "resp ESME_RSYSERR") }},
		"submit silent": {Faults{SubmitSilent: true}, func(t *testing.T, _ *Carrier, k *client) { k.submit(one); says(t, k, receipt) }},
		"refuse ratio":  {Faults{RefuseRatio: 1}, func(t *testing.T, _ *Carrier, k *client) { k.submit(one); says(t, k, "resp ESME_RTHROTTLED") }},
		"refuse status": {Faults{RefuseRatio: 1, RefuseStatus: QueueFull}, func(t *testing.T, _ *Carrier, k *client) { k.submit(one); says(t, k, "resp ESME_RMSGQFUL") }},
		"nack every": {Faults{NackEvery: 2}, func(t *testing.T, _ *Carrier, k *client) {
			k.submit(quiet)
			k.submit(quiet)
			says(t, k, ok, "nack ESME_RINVCMDID")
		}},
		"response twice": {Faults{RespTwice: true}, func(t *testing.T, _ *Carrier, k *client) { k.submit(one); says(t, k, ok, ok, receipt) }},
		"empty ids": {Faults{EmptyIDs: true}, func(t *testing.T, _ *Carrier, k *client) {
			k.submit(quiet)
			if id := messageID(t, k.next()); id != "" {
				t.Error(id)
			}
		}},
		"wrong sequence": {Faults{WrongSequence: true}, func(t *testing.T, _ *Carrier, k *client) {
			seq := k.submit(quiet)
			if a, b := k.next(), k.next(); a.seq == seq || b.seq != seq {
				t.Errorf("%d %d", a.seq, b.seq)
			}
		}},
		"strange command": {Faults{StrangeCommand: true}, func(t *testing.T, _ *Carrier, k *client) { k.submit(quiet); says(t, k, "command 0xbeef", ok) }},
		"congestion": {Faults{Congestion: 85}, func(t *testing.T, _ *Carrier, k *client) {
			k.submit(quiet)
			if p := k.next(); !strings.HasSuffix(string(p.body), "\x04\x28\x00\x01\x55") {
				t.Errorf("% x", p.body)
			}
		}},
		"no receipts": {Faults{NoReceipts: true}, func(t *testing.T, c *Carrier, k *client) {
			k.submit(one)
			says(t, k, ok)
			if n := c.Stats().ReceiptsWaiting; n != 0 {
				t.Error(n)
			}
		}},
		"receipt loss": {Faults{ReceiptLoss: 1}, func(t *testing.T, c *Carrier, k *client) {
			k.submit(one)
			says(t, k, ok)
			if n := c.Stats().ReceiptsWaiting; n != 0 {
				t.Error(n)
			}
		}},
		"receipt first":  {Faults{ReceiptFirst: true}, func(t *testing.T, _ *Carrier, k *client) { k.submit(one); says(t, k, receipt, ok) }},
		"receipt copies": {Faults{ReceiptCopies: 3}, func(t *testing.T, _ *Carrier, k *client) { k.submit(one); says(t, k, ok, receipt, receipt, receipt) }},
		"hold receipts": {Faults{HoldReceipts: true}, func(t *testing.T, c *Carrier, k *client) {
			k.submit(one)
			says(t, k, ok)
			k.request(0x15, nil)
			says(t, k, "alive")
			c.Faults(func(f *Faults) { f.HoldReceipts = false })
			says(t, k, receipt)
		}},
		"unbind after": {Faults{UnbindAfter: 2}, func(t *testing.T, _ *Carrier, k *client) {
			k.submit(quiet)
			k.submit(quiet)
			says(t, k, ok, ok, "unbind", "closed")
		}},
		"drop after":       {Faults{DropAfter: 2}, func(t *testing.T, _ *Carrier, k *client) { k.submit(quiet); k.submit(quiet); says(t, k, ok, "closed") }},
		"half a PDU after": {Faults{HalfPDUAfter: 2}, func(t *testing.T, _ *Carrier, k *client) { k.submit(quiet); k.submit(quiet); says(t, k, ok, "half") }},
		"reset on drop":    {Faults{DropAfter: 1, ResetOnDrop: true}, func(t *testing.T, _ *Carrier, k *client) { k.submit(quiet); says(t, k, "closed") }},
		"garbage after":    {Faults{GarbageAfter: 1}, func(t *testing.T, _ *Carrier, k *client) { k.submit(quiet); says(t, k, "garbage") }},
		"lie after":        {Faults{LieAfter: 1, LieLength: 0x80000000}, func(t *testing.T, _ *Carrier, k *client) { k.submit(quiet); says(t, k, "length 0x80000000") }},
		"a short lie":      {Faults{LieAfter: 1, LieLength: 15}, func(t *testing.T, _ *Carrier, k *client) { k.submit(quiet); says(t, k, "length 0xf") }},
		"enquire silent": {Faults{EnquireSilent: true}, func(t *testing.T, _ *Carrier, k *client) {
			k.request(0x15, nil)
			k.submit(quiet)
			says(t, k, ok)
		}},
		"enquires itself": {Faults{EnquireEvery: 5 * time.Millisecond}, func(t *testing.T, c *Carrier, k *client) {
			says(t, k, "command 0x15", "command 0x15")
			if v := c.Violations(); len(v) > 0 {
				t.Errorf("%+v", v)
			}
		}},
		"half open": {Faults{HalfOpen: true}, func(t *testing.T, c *Carrier, k *client) {
			k.request(0x15, nil)
			k.submit(quiet)
			_ = k.conn.SetReadDeadline(time.Now().Add(30 * time.Millisecond))
			if n, err := k.conn.Read(make([]byte, 1)); n != 0 || err == nil {
				t.Error("it said something")
			}
			if n := c.Stats().Submits; n != 0 {
				t.Error("it noted a submit")
			}
		}},
		"stop reading": {Faults{StopReading: true}, func(t *testing.T, c *Carrier, k *client) {
			k.submit(quiet)
			k.submit(quiet)
			_ = k.conn.SetReadDeadline(time.Now().Add(30 * time.Millisecond))
			if n, err := k.conn.Read(make([]byte, 1)); n != 0 || err == nil {
				t.Error("it said something")
			}
			c.Faults(func(f *Faults) { f.StopReading = false })
			says(t, k, ok, ok)
		}},
		"jitter": {Faults{RespJitter: 40 * time.Millisecond, RespDelay: time.Millisecond}, func(t *testing.T, _ *Carrier, k *client) {
			var sent, answered []uint32
			for range 20 {
				sent = append(sent, k.submit(quiet))
			}
			for range sent {
				answered = append(answered, k.next().seq)
			}
			if fmt.Sprint(sent) == fmt.Sprint(answered) {
				t.Error("answered in order")
			}
		}},
		"unknown receipts": {Faults{UnknownPerSec: 1000}, func(t *testing.T, c *Carrier, k *client) {
			says(t, k, receipt, receipt, receipt)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			late := strings.HasPrefix(name, "half open") || strings.HasPrefix(name, "stop") // they hold a bind up too
			o := quick
			if !late {
				o.Faults = row.f
			}
			c, addr := serve(t, o)
			k := connect(t, addr)
			if !strings.HasPrefix(name, "bind") && name != "refuse connections" {
				k.bind(9, "demo", "demo")
				if p := k.next(); p.status != 0 {
					t.Fatalf("%+v", p)
				}
			}
			if late {
				c.Faults(func(f *Faults) { *f = row.f })
			}
			row.play(t, c, k)
		})
	}
}

func TestBinds(t *testing.T) {
	_, addr := serve(t, Options{SystemID: "demo", Password: "secret", SystemType: "", MaxSessions: 2})
	for _, row := range []struct {
		command      uint32
		id, password string
		want         Status
	}{
		{9, "demo", "wrong", InvalidPassword}, {9, "other", "secret", InvalidSystemID},
		{9, "demo-demo-demo-demo", "secret", InvalidSystemID}, {9, "demo", "far-too-long", InvalidPassword},
		{1, "demo", "secret", OK}, {2, "demo", "secret", OK}, {9, "demo", "secret", AlreadyBound},
	} {
		k := connect(t, addr)
		k.bind(row.command, row.id, row.password)
		if p := k.next(); Status(p.status) != row.want || p.command != row.command|0x80000000 {
			t.Errorf("%+v: %s", row, Status(p.status))
		} else if row.want == OK && !strings.HasSuffix(string(p.body), "\x02\x10\x00\x01\x34") {
			t.Errorf("no sc_interface_version in % x", p.body)
		} else if row.want != OK {
			says(t, k, "closed")
		}
	}
}

// TestClosesOlder: a carrier that allows so many binds closes the oldest for a new one, and
// says of each system_id how many it had at once and how much came in any second.
func TestClosesOlder(t *testing.T) {
	c, addr := serve(t, Options{MaxSessions: 2, ClosesOlder: true, NoReceipts: true})
	var all []*client
	for range 3 {
		k := connect(t, addr)
		k.bind(9, "demo", "")
		if p := k.next(); Status(p.status) != OK {
			t.Fatal(Status(p.status))
		}
		all = append(all, k)
	}
	says(t, all[0], "closed")
	for range 5 {
		all[2].submit(usual("25779000000", "a"))
		says(t, all[2], "resp ESME_ROK")
	}
	other := connect(t, addr)
	other.bind(2, "other", "")
	if p := other.next(); Status(p.status) != OK {
		t.Fatal(Status(p.status))
	}
	want := []Account{{SystemID: "demo", Bound: 2, MostBound: 2, Submits: 5, Peak: 5}, {SystemID: "other", Bound: 1, MostBound: 1}}
	if got := c.Accounts(); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if s := c.Stats(); s.Replaced != 1 || s.BindRefused != 0 || s.Sessions != 3 {
		t.Errorf("%+v", s)
	}
}

// TestAnySecond: the most in any second is found wherever the second begins.
func TestAnySecond(t *testing.T) {
	var m secondMeter
	for i := range int64(1000) { // ten a second, and a hundred in a tenth that lies across a full second
		m.add(i * int64(100*time.Millisecond))
	}
	if m.peak != 10 {
		t.Errorf("%d, want 10", m.peak)
	}
	for i := range int64(100) {
		m.add(int64(100*time.Second) + int64(950*time.Millisecond) + i*int64(time.Millisecond))
	}
	if m.peak != 100 {
		t.Errorf("%d, want 100", m.peak)
	}
	m.add(int64(102*time.Second) + int64(50*time.Millisecond))
	if m.count != 1 {
		t.Errorf("%d are of the last second, want 1", m.count)
	}
}

// TestPairs: what a transmitter submits is told to the receiver.
func TestPairs(t *testing.T) {
	c, addr := serve(t, quick)
	tx, rx := connect(t, addr), connect(t, addr)
	tx.bind(2, "demo", "")
	rx.bind(1, "demo", "")
	tx.next()
	rx.next()
	tx.submit(usual("25779000000", "a"))
	says(t, tx, "resp ESME_ROK")
	says(t, rx, "receipt DELIVRD")
	rx.submit(usual("25779000000", "a"))
	says(t, rx, "resp ESME_RINVBNDSTS")
	if v := c.Violations(); len(v) != 1 || v[0].Status != InvalidBindStatus {
		t.Errorf("%+v", v)
	}
	if s := c.Sessions(); len(s) != 2 || s[0].Mode != "bind_transmitter" || s[0].Submits != 1 {
		t.Errorf("%+v", s)
	}
}

func TestLimits(t *testing.T) {
	c, addr := serve(t, Options{TPS: 3, NoReceipts: true})
	k := bound(t, addr)
	for range 5 {
		k.submit(usual("25779000000", "a"))
	}
	ok, thr := "resp ESME_ROK", "resp ESME_RTHROTTLED"
	says(t, k, ok, ok, ok, thr, thr)
	if s := c.Stats(); s.Accepted != 3 || s.Refused[Throttled] != 2 || s.Peak != 5 || s.Duplicates != 2 {
		t.Errorf("%+v", s)
	}

	c, addr = serve(t, Options{Window: 2, RespDelay: time.Second, NoReceipts: true})
	k = bound(t, addr)
	for range 3 {
		k.submit(usual("25779000000", "a"))
	}
	for range 3 {
		p := k.next()
		if want := Status(0); p.seq == 4 {
			want = Throttled
			if Status(p.status) != want {
				t.Errorf("above the window: %s", Status(p.status))
			}
		}
	}
	if v := c.Violations(); len(v) != 1 || v[0].Text != "above the window" {
		t.Errorf("%+v", v)
	}

	_, addr = serve(t, Options{MaxPending: 2, Faults: Faults{HoldReceipts: true}})
	k = bound(t, addr)
	for range 3 {
		k.submit(usual("25779000000", "a"))
	}
	says(t, k, ok, ok, "resp ESME_RMSGQFUL")
}

func TestTimeouts(t *testing.T) {
	_, addr := serve(t, Options{BindTimeout: 20 * time.Millisecond})
	says(t, connect(t, addr), "closed")
	_, addr = serve(t, Options{IdleTimeout: time.Second}) // in which a busy machine binds
	says(t, bound(t, addr), "closed")
}

func TestUnbindAndDrop(t *testing.T) {
	c, addr := serve(t, quick)
	k := bound(t, addr)
	c.Unbind()
	says(t, k, "unbind", "closed")
	k = bound(t, addr)
	k.request(6, nil)
	says(t, k, "command 0x80000006", "closed")
	k = bound(t, addr)
	c.SendRaw([]byte("HTTP/1.1 200 OK\r\n"))
	says(t, k, "garbage")
	k = bound(t, addr)
	c.DropAll()
	says(t, k, "closed")
	k = bound(t, addr)
	c.ResetAll()
	says(t, k, "closed")
	if v := c.Violations(); len(v) > 0 {
		t.Errorf("%+v", v)
	}
}

// TestHostileClient: what is no SMPP is answered once and hung up on.
func TestHostileClient(t *testing.T) {
	for name, octets := range map[string]string{
		"http": "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "tls": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03aaaaaaaaaaaaaaaa",
		"zero": strings.Repeat("\x00", 16), "huge": "\xff\xff\xff\xff\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x01",
	} {
		c, addr := serve(t, Options{})
		k := connect(t, addr)
		_, _ = k.conn.Write([]byte(octets))
		if said := k.next().say(t); said != "nack ESME_RINVCMDLEN" {
			t.Errorf("%s: %s", name, said)
		}
		if said := k.next().say(t); said != "closed" || len(c.Violations()) != 1 {
			t.Errorf("%s: %s, %v", name, said, c.Violations())
		}
	}
}

func TestUnknownCommands(t *testing.T) {
	c, addr := serve(t, Options{})
	k := bound(t, addr)
	for _, command := range []uint32{3, 7, 8, 0x21, 0x103, 0xBEEF} {
		k.request(command, nil)
		says(t, k, "nack ESME_RINVCMDID")
	}
	k.request(0x15, []byte{1})
	says(t, k, "alive")
	k.write(0x80000005, 0, 77, []byte{0})
	k.write(0x80000015, 0, 77, nil)
	k.write(4, 0, 0, usual("25779000000", "a").body())
	says(t, k, "resp ESME_ROK")
	if n := c.Stats().Violations; n != 10 {
		t.Errorf("%d violations: %+v", n, c.Violations())
	}
}
