package carriersim

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a carrier for the length of a test.
func serve(t testing.TB, o Options) (*Carrier, string) {
	t.Helper()
	c := New(o)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return c, ln.Addr().String()
}

// pdu is a PDU as the client got it.
type pdu struct {
	command, status, seq uint32
	body                 []byte
	odd                  string // "closed", or what is no PDU
}

// client is a raw client. Its encoder is written out by hand, so that it
// proves the carrier's decoder instead of mirroring it.
type client struct {
	t    testing.TB
	conn net.Conn
	r    *bufio.Reader
	seq  uint32
	ack  uint32 // command_status of its deliver_sm_resp
	mute bool   // it answers no delivery
}

func connect(t testing.TB, addr string) *client {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &client{t: t, conn: conn, r: bufio.NewReader(conn)}
}

// bound connects and binds; "" = as a transceiver.
func bound(t testing.TB, addr string) *client {
	t.Helper()
	k := connect(t, addr)
	k.bind(9, "demo", "demo")
	if p := k.next(); p.command != 0x80000009 || p.status != 0 {
		t.Fatalf("bind_transceiver_resp: %+v", p)
	}
	return k
}

func (k *client) write(command, status, seq uint32, body []byte) {
	k.t.Helper()
	b := make([]byte, 16, 16+len(body))
	binary.BigEndian.PutUint32(b, uint32(16+len(body)))
	binary.BigEndian.PutUint32(b[4:], command)
	binary.BigEndian.PutUint32(b[8:], status)
	binary.BigEndian.PutUint32(b[12:], seq)
	_, _ = k.conn.Write(append(b, body...)) // a closed connection shows when reading
}

func (k *client) request(command uint32, body []byte) uint32 {
	k.t.Helper()
	k.seq++
	k.write(command, 0, k.seq, body)
	return k.seq
}

func (k *client) bind(command uint32, systemID, password string) {
	k.t.Helper()
	k.request(command, []byte(systemID+"\x00"+password+"\x00\x00\x34\x00\x00\x00"))
}

// sm is a submit_sm in the making; the zero value of a field is its usual one.
type sm struct {
	service, to, from  string
	srcTON, srcNPI     byte
	dstTON, dstNPI     byte
	esm, pid, priority byte
	schedule, validity string
	registered         byte
	replace, coding    byte
	defaultID          byte
	text               string // octets
	length             int    // sm_length when it lies
	tlvs               string
}

func usual(to, text string) sm {
	return sm{to: to, from: "DEMO", srcTON: 5, dstTON: 1, dstNPI: 1, registered: 1, text: text}
}

func (m sm) body() []byte {
	var b bytes.Buffer
	b.WriteString(m.service + "\x00")
	b.Write([]byte{m.srcTON, m.srcNPI})
	b.WriteString(m.from + "\x00")
	b.Write([]byte{m.dstTON, m.dstNPI})
	b.WriteString(m.to + "\x00")
	b.Write([]byte{m.esm, m.pid, m.priority})
	b.WriteString(m.schedule + "\x00" + m.validity + "\x00")
	length := len(m.text)
	if m.length > 0 {
		length = m.length
	}
	b.Write([]byte{m.registered, m.replace, m.coding, m.defaultID, byte(length)})
	b.WriteString(m.text + m.tlvs)
	return b.Bytes()
}

func (k *client) submit(m sm) uint32 {
	k.t.Helper()
	return k.request(4, m.body())
}

// next reads one PDU and answers it when it is a request.
func (k *client) next() pdu {
	k.t.Helper()
	_ = k.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	var head [16]byte
	if n, err := io.ReadFull(k.r, head[:]); err != nil {
		if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
			k.t.Fatal("nothing came within 10 s")
		}
		if n > 0 {
			return pdu{odd: "half"}
		}
		return pdu{odd: "closed"}
	}
	length := binary.BigEndian.Uint32(head[:])
	p := pdu{
		command: binary.BigEndian.Uint32(head[4:]), status: binary.BigEndian.Uint32(head[8:]), seq: binary.BigEndian.Uint32(head[12:]),
	}
	if length < 16 || length > 100_000 {
		if string(head[:4]) == "HTTP" {
			return pdu{odd: "garbage"}
		}
		return pdu{odd: fmt.Sprintf("length %#x", length)}
	}
	p.body = make([]byte, length-16)
	if _, err := io.ReadFull(k.r, p.body); err != nil {
		return pdu{odd: "half"}
	}
	switch p.command {
	case 5, 0x103:
		if !k.mute {
			k.write(p.command|0x80000000, k.ack, p.seq, []byte{0})
		}
	case 6, 0x15:
		k.write(p.command|0x80000000, 0, p.seq, nil)
	}
	return p
}

// got is a delivery as the client understands it, by its own reading.
type got struct {
	command  uint32
	esm      byte
	from, to string
	coding   byte
	text     string
	tlvs     map[uint16]string
}

func (p pdu) delivery(t testing.TB) got {
	t.Helper()
	b := p.body
	str := func() string {
		s, rest, ok := bytes.Cut(b, []byte{0})
		if !ok {
			t.Fatalf("a string without an end in % x", p.body)
		}
		b = rest
		return string(s)
	}
	skip := func(n int) { b = b[n:] }
	g := got{command: p.command, tlvs: map[uint16]string{}}
	str()
	skip(2)
	g.from = str()
	skip(2)
	g.to = str()
	g.esm = b[0]
	if p.command == 5 {
		skip(3)
		str()
		str()
		g.coding = b[2]
		n := int(b[4])
		g.text = string(b[5 : 5+n])
		skip(5 + n)
	} else {
		g.coding = b[2]
		skip(3)
	}
	for len(b) > 0 {
		n := int(binary.BigEndian.Uint16(b[2:]))
		g.tlvs[binary.BigEndian.Uint16(b)] = string(b[4 : 4+n])
		skip(4 + n)
	}
	if payload, ok := g.tlvs[0x0424]; ok && g.text == "" {
		g.text = payload
	}
	return g
}

// field reads one field of a receipt's text, whatever the case of its key.
func (g got) field(key string) string {
	_, rest, ok := strings.Cut(strings.ToLower(g.text), key+":")
	if !ok {
		return ""
	}
	return strings.SplitN(rest, " ", 2)[0]
}

// say puts a PDU into a word or two.
func (p pdu) say(t testing.TB) string {
	t.Helper()
	switch p.command {
	case 0x80000004:
		return "resp " + Status(p.status).String()
	case 0x80000000:
		return "nack " + Status(p.status).String()
	case 0x80000015:
		return "alive"
	case 0x102:
		return "alert"
	case 6:
		return "unbind"
	case 5, 0x103:
		g := p.delivery(t)
		stat := strings.ToUpper(g.field("stat"))
		if stat == "" && g.tlvs[0x0427] != "" {
			stat = State(g.tlvs[0x0427][0]).String()
		}
		switch {
		case p.command == 0x103:
			return "data " + stat
		case g.esm&0x3C == 0x20:
			return "intermediate " + stat
		case g.esm&0x3C == 0x04:
			return "receipt " + stat
		case stat != "":
			return "forged " + stat
		}
		return "text"
	case 0:
		return p.odd
	}
	return fmt.Sprintf("command %#x", p.command)
}

// until polls a condition with a deadline.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

func messageID(t testing.TB, p pdu) string {
	t.Helper()
	id, _, ok := bytes.Cut(p.body, []byte{0})
	if p.command != 0x80000004 || !ok {
		t.Fatalf("no submit_sm_resp with an id: %+v", p)
	}
	return string(id)
}
