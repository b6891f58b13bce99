package smpp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// rule carriers 9.17: every field of the options is in the bind.
func TestBindFields(t *testing.T) {
	t.Parallel()
	c := newCarrier(t)
	o := options(c.ln.Addr().String())
	o.SystemType, o.AddressTON, o.AddressNPI, o.AddressRange = "VMA", 5, 9, "^257"
	run(t, o)
	got := c.accept().acceptBind()
	if got.command != 9 || got.sequence == 0 || got.status != 0 {
		t.Errorf("got %+v", got)
	}
	if want := "intumwa\x00secret\x00VMA\x00\x34\x05\x09^257\x00"; string(got.body) != want {
		t.Errorf("body %q, want %q", got.body, want)
	}
}

// TestBindVersions: interface_version is sent as set, long credentials as they are, and the carrier's own version is
// kept. Without optional parameters in the protocol (SMPP 3.3) none is sent. rule carriers 9.17
func TestBindVersions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		version  uint8
		response string // body of the bind response
		peer     uint8
		tlvs     bool
	}{
		{"3.4", 0, "smsc\x00\x02\x10\x00\x01\x34", 0x34, true},
		{"3.4, no sc_interface_version", Version34, "smsc\x00", 0, true},
		{"3.4, no body", Version34, "", 0, true},
		{"3.4, a damaged parameter", Version34, "smsc\x00\x02\x10\x00\x09\x34", 0, true},
		{"5.0 at an SMSC of 3.4", Version50, "smsc\x00\x02\x10\x00\x01\x34", 0x34, true},
		{"3.3", Version33, "smsc\x00", 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			sim := newCarrier(t)
			o := options(sim.ln.Addr().String())
			o.Version, o.Password = c.version, "a password of thirty octets..."
			b, _ := run(t, o)
			p := sim.accept()
			bind := p.expect(9)
			if want := "intumwa\x00a password of thirty octets...\x00\x00" + string([]byte{cmp.Or(c.version, Version34)}) +
				"\x00\x00\x00"; string(bind.body) != want {
				t.Errorf("body %q, want %q", bind.body, want)
			}
			p.send(0x80000009, 0, bind.sequence, []byte(c.response)...)
			waitBound(t, b)
			if got := b.Snapshot().PeerVersion; got != c.peer {
				t.Errorf("the carrier's version is %#x, want %#x", got, c.peer)
			}
			m := sample()
			m.TLVs = []TLV{{TagUserMessageReference, []byte{1, 2}}}
			if err := b.Submit(context.Background(), m, func(Result) {}); err != nil {
				t.Fatal(err)
			}
			if got := strings.HasSuffix(string(p.expect(4).body), "\x02\x04\x00\x02\x01\x02"); got != c.tlvs {
				t.Errorf("optional parameters: %v, want %v", got, c.tlvs)
			}
		})
	}
}

// TestBindModes: which binds each mode makes, where and as whom; a receiver alone submits nothing.
func TestBindModes(t *testing.T) {
	t.Parallel()
	for mode, want := range map[BindMode]string{Transceiver: "9 intumwa", TransmitterReceiver: "2 intumwa, 1 other",
		Transmitter: "2 intumwa", Receiver: "1 other"} {
		t.Run(mode.String(), func(t *testing.T) {
			here, there := newCarrier(t), newCarrier(t)
			o := options(here.ln.Addr().String())
			o.Mode = mode
			o.Receiver = Account{Addresses: []string{there.ln.Addr().String()}, SystemID: "other", Password: "hidden"}
			b, _ := run(t, o)
			var got []string
			bound := func(c *carrier) {
				p := c.accept()
				bind := p.next()
				id, rest, _ := strings.Cut(string(bind.body), "\x00")
				if password, _, _ := strings.Cut(rest, "\x00"); (id == "other") != (password == "hidden") {
					t.Errorf("%s binds with %q", id, password)
				}
				got = append(got, fmt.Sprintf("%d %s", bind.command, id))
				p.send(bind.command|0x80000000, 0, bind.sequence, 0)
			}
			if mode != Receiver {
				bound(here)
			}
			if mode == Receiver || mode == TransmitterReceiver {
				bound(there)
			}
			waitBound(t, b)
			if strings.Join(got, ", ") != want {
				t.Errorf("binds: %v, want %s", got, want)
			}
			err := b.Submit(context.Background(), sample(), func(Result) {})
			if submits := mode != Receiver; submits != mode.Submits() || submits != (err == nil) || !submits &&
				!errors.Is(err, ErrNotBound) {
				t.Errorf("submits: %v, %v", mode.Submits(), err)
			}
			if mode.Receives() != (mode != Transmitter) {
				t.Errorf("receives: %v", mode.Receives())
			}
		})
	}
}

// TestLocalAddress: the connection comes from our configured address.
func TestLocalAddress(t *testing.T) {
	t.Parallel()
	c := newCarrier(t)
	o := options(c.ln.Addr().String())
	o.LocalAddress = "127.0.0.2"
	run(t, o)
	p := c.bound()
	if got, _, _ := net.SplitHostPort(p.conn.RemoteAddr().String()); got != o.LocalAddress {
		t.Errorf("it comes from %s", got)
	}
}

// TestOtherAddress: the next address is tried when one takes no connection, refuses the bind or does not answer it.
// After the bind is lost the first is tried first.
func TestOtherAddress(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*peer){
		"refuses":   func(p *peer) { p.send(0x80000009, 0x08, p.next().sequence) },
		"standby":   func(p *peer) { p.send(0x80000009, 0x0D, p.next().sequence) },
		"closes":    func(p *peer) { _ = p.conn.Close() },
		"no answer": func(p *peer) { p.next() },
	} {
		t.Run(name, func(t *testing.T) {
			first, second := newCarrier(t), newCarrier(t)
			o := options(first.ln.Addr().String())
			o.Addresses = append(o.Addresses, second.ln.Addr().String())
			if o.BindTimeout = patience; name == "no answer" {
				o.BindTimeout = 2 * time.Second
			}
			b, _ := run(t, o)
			fail(first.accept())
			p := second.bound()
			waitBound(t, b)
			_ = p.conn.Close()
			first.bound()
			waitBound(t, b)
		})
	}
}

// rule carriers 9.4: PDUs before the bind response are answered as far as possible, and only
// the response with our sequence_number counts.
func TestTrafficBeforeBindResponse(t *testing.T) {
	t.Parallel()
	c := newCarrier(t)
	b, _ := run(t, options(c.ln.Addr().String()))
	p := c.accept()
	bind := p.expect(9)
	p.send(rawEnquire, 0, 41)
	if got := p.expect(rawEnquireResp); got.sequence != 41 {
		t.Errorf("got %+v", got)
	}
	p.send(0x80000009, 0, bind.sequence+7, 'x', 0) // of another request
	p.send(0x80000002, 0, bind.sequence, 'x', 0)   // of another type
	p.send(rawDeliver, 0, 42, deliverBody(4, 0, receiptText)...)
	if got := p.expect(rawDeliverResp); got.status != 0x04 {
		t.Errorf("got %+v", got)
	}
	p.send(0x77, 0, 43)
	p.expect(rawGenericNack)
	if s := b.Snapshot(); s.State != Connecting {
		t.Errorf("state %s", s.State)
	}
	binding := b.Snapshot().Since
	p.send(0x80000009, 0, bind.sequence, 's', 0, 0x02, 0x10, 0, 1, 0x34) // with sc_interface_version
	waitBound(t, b)
	if bound := b.Snapshot().Since; !bound.After(binding) {
		t.Errorf("bound since %v, and connecting since %v", bound, binding)
	}
}

// Every class of bind result.
func TestBindResults(t *testing.T) {
	t.Parallel()
	for status, hold := range map[uint32][2]time.Duration{
		0x0E:  {5 * time.Minute, 6 * time.Minute},
		0x0F:  {5 * time.Minute, 6 * time.Minute},
		0x53:  {5 * time.Minute, 6 * time.Minute},
		0x05:  {30 * time.Second, time.Minute},
		0x0D:  {5 * time.Minute, 6 * time.Minute},
		0x65:  {5 * time.Minute, 6 * time.Minute},
		0x101: {5 * time.Minute, 6 * time.Minute}, // ESME_RPROHIBITED of SMPP 5
		0x400: {5 * time.Minute, 6 * time.Minute},
		0x4FF: {5 * time.Minute, 6 * time.Minute},
		0x500: {5 * time.Minute, 6 * time.Minute},
		0x03:  {0, time.Second},
		0x04:  {0, time.Second},
		0x08:  {0, time.Second},
		0x14:  {0, time.Second},
		0x58:  {0, time.Second},
		0x64:  {0, time.Second},
		0xFF:  {0, time.Second},
	} {
		for _, nack := range []bool{false, true} {
			t.Run(fmt.Sprintf("%#x nack=%v", status, nack), func(t *testing.T) {
				c := newCarrier(t)
				l, err := New(options(c.ln.Addr().String()))
				if err != nil {
					t.Fatal(err)
				}
				go func() {
					p := c.accept()
					bind := p.expect(9)
					answer := uint32(0x80000009)
					if nack {
						answer = rawGenericNack
					}
					p.send(answer, status, bind.sequence)
				}()
				_, err = l.bindSession(context.Background(), asTransceiver, c.ln.Addr().String(), nil)
				var refused *StatusError
				if !errors.As(err, &refused) || refused.Status != Status(status) || refused.Command != "bind_transceiver" {
					t.Fatalf("got %v", err)
				}
				b := backoff{base: backoffBase, most: backoffMost}
				if got := b.next(fmt.Errorf("binding: %w", err), false); got < hold[0] || got > hold[1] {
					t.Errorf("hold %s, want within %v", got, hold)
				}
			})
		}
	}
}

// rule carriers 9.20: while only the bind is open, a refusal of any kind answers it. An acceptance
// that does not fit does not; the error names it.
func TestOddBindAnswers(t *testing.T) {
	t.Parallel()
	const timeout = 0xFFFF
	for _, c := range []struct {
		name              string
		command, sequence uint32
		status            uint32
		want              uint32 // of the refusal; timeout: it is no answer
	}{
		{"generic_nack with sequence 0", rawGenericNack, 0, 0x03, 0x03}, // SMPP 3.4, 4.3: sequence_number may be NULL
		{"generic_nack with another sequence", rawGenericNack, 77, 0x02, 0x02},
		{"generic_nack of the bind", rawGenericNack, bindFirst, 0x0E, 0x0E},
		{"generic_nack without a status", rawGenericNack, 0, 0, 0},
		{"bind_transceiver_resp with sequence 0", 0x80000009, 0, 0x0E, 0x0E},
		{"bind_transceiver_resp with another sequence", 0x80000009, 0x7FFFFFFF, 0x0D, 0x0D},
		{"bind_transmitter_resp", 0x80000002, bindFirst, 0x0F, 0x0F},
		{"bind_receiver_resp with sequence 0", 0x80000001, 0, 0x0E, 0x0E},
		{"bind_transmitter_resp with a vendor's status", 0x80000002, 5, 0x412, 0x412},
		{"submit_sm_resp", rawSubmitResp, 0, 0x04, 0x04},
		{"an unknown response", 0x800000FF, 0, 0x0E, 0x0E},
		{"accepted with sequence 0", 0x80000009, 0, 0, timeout},
		{"accepted as a transmitter", 0x80000002, bindFirst, 0, timeout},
		{"enquire_link_resp", rawEnquireResp, bindFirst, 0, timeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			smsc := newCarrier(t)
			o := options(smsc.ln.Addr().String())
			o.BindTimeout = patience
			if c.want == timeout {
				o.BindTimeout = 2 * time.Second
			}
			l, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				p := smsc.accept()
				p.expect(9)
				p.send(c.command, c.status, c.sequence)
			}()
			_, err = l.bindSession(context.Background(), asTransceiver, o.Addresses[0], nil)
			var refused *StatusError
			switch {
			case c.want == timeout:
				if refusal(err) != nil || !errors.Is(err, os.ErrDeadlineExceeded) ||
					!strings.Contains(err.Error(), "does not answer it") {
					t.Errorf("got %v", err)
				}
			case !errors.As(err, &refused) || uint32(refused.Status) != c.want || bindResult(err) != bindRejected:
				t.Errorf("got %v", err)
			}
		})
	}
}

// rule carriers 9.4: the bind leaves a silent carrier after BindTimeout, and another protocol
// at once, with its name in the reason.
func TestBindToOtherProtocol(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, speaks, reason string
		result               string
	}{
		{"silence", "", "no answer to bind_transceiver for 100ms", bindTimeout},
		{"http", "HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n", "HTTP", bindBroken},
		{"tls alert", "\x15\x03\x01\x00\x02\x02\x28\x15\x03\x01\x00\x02\x02\x28\x00\x00", "TLS", bindBroken},
		{"ssh", "SSH-2.0-OpenSSH_9.6\r\n", "SSH", bindBroken},
		{"length 0", strings.Repeat("\x00", 16), "command_length 0", bindBroken},
		{"length 15", "\x00\x00\x00\x0f" + strings.Repeat("\x00", 16), "command_length 15", bindBroken},
		{"length 2^31", "\x80\x00\x00\x00" + strings.Repeat("\x00", 16), "command_length", bindBroken},
		{"length 2^32-1", strings.Repeat("\xff", 16), "command_length", bindBroken},
		{"unbind", string(encodeRaw(packet{rawUnbind, 0, 1, nil})), "unbind", bindBroken},
		{"half a header", "\x00\x00\x00", "", bindTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			sim := newCarrier(t)
			o := options(sim.ln.Addr().String())
			o.BindTimeout = patience
			if c.result == bindTimeout {
				o.BindTimeout = 100 * time.Millisecond
			}
			b, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			hold := make(chan struct{})
			defer close(hold)
			go func() {
				p := sim.accept()
				p.expect(9)
				if c.speaks != "" {
					p.write([]byte(c.speaks))
				}
				<-hold
			}()
			began := time.Now()
			_, err = b.bindSession(context.Background(), asTransceiver, o.Addresses[0], nil)
			if err == nil || !strings.Contains(err.Error(), c.reason) {
				t.Errorf("got %v, want %q in it", err, c.reason)
			}
			if got := bindResult(err); got != c.result {
				t.Errorf("result %s, want %s (%v)", got, c.result, err)
			}
			if d := time.Since(began); d > 5*time.Second {
				t.Errorf("took %s", d)
			}
		})
	}
}

func TestRunEndsWhileBinding(t *testing.T) {
	t.Parallel()
	c := newCarrier(t)
	_, stop := run(t, options(c.ln.Addr().String()))
	c.accept().expect(9)
	began := time.Now()
	stop()
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("Run took %s to end", d)
	}
}

func TestOptions(t *testing.T) {
	good := options("127.0.0.1:2775")
	if _, err := New(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Options){
		"address":       func(o *Options) { o.Addresses = []string{"carrier"} },
		"deliver":       func(o *Options) { o.Deliver = nil },
		"mode":          func(o *Options) { o.Mode = 9 },
		"no system_id":  func(o *Options) { o.SystemID = "" },
		"no address":    func(o *Options) { o.Addresses = nil },
		"receiver":      func(o *Options) { o.Receiver.Addresses = []string{"carrier"} },
		"local address": func(o *Options) { o.LocalAddress = "eth0" },
		"system_id":     func(o *Options) { o.SystemID = strings.Repeat("x", 256) },
		"password":      func(o *Options) { o.Password = "123456789" + strings.Repeat("x", 255) },
		"password NUL":  func(o *Options) { o.Password = "12\x0034" },
		"system_type":   func(o *Options) { o.SystemType = strings.Repeat("x", 256) },
		"address_range": func(o *Options) { o.AddressRange = strings.Repeat("x", 41) },
		"tps":           func(o *Options) { o.TPS = -1 },
		"window":        func(o *Options) { o.Window = -1 },
		"timeout":       func(o *Options) { o.EnquireLink = -1 },
	} {
		o := good
		change(&o)
		if _, err := New(o); err == nil {
			t.Errorf("%s: no error", name)
		} else if strings.Contains(err.Error(), "123456789") {
			t.Errorf("%s: the password is in the error", name)
		}
	}
}
