package smpp

import (
	"context"
	"errors"
	"fmt"
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
				_, err = l.bindSession(context.Background(), asTransceiver, nil)
				var refused *StatusError
				if !errors.As(err, &refused) || refused.Status != Status(status) || refused.Command != "bind_transceiver" {
					t.Fatalf("got %v", err)
				}
				b := backoff{base: backoffBase, most: backoffMost}
				if got := b.next(fmt.Errorf("binding: %w", err)); got < hold[0] || got > hold[1] {
					t.Errorf("hold %s, want within %v", got, hold)
				}
			})
		}
	}
}

// rule carriers 9.18: while only the bind is open, a refusal of any kind answers it. An acceptance
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
				o.BindTimeout = 200 * time.Millisecond
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
			_, err = l.bindSession(context.Background(), asTransceiver, nil)
			var refused *StatusError
			switch {
			case c.want == timeout:
				if refusal(err) != nil || !errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(err.Error(), "does not answer it") {
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
			_, err = b.bindSession(context.Background(), asTransceiver, nil)
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
		"address":       func(o *Options) { o.Address = "carrier" },
		"deliver":       func(o *Options) { o.Deliver = nil },
		"mode":          func(o *Options) { o.Mode = 9 },
		"no system_id":  func(o *Options) { o.SystemID = "" },
		"system_id":     func(o *Options) { o.SystemID = strings.Repeat("x", 16) },
		"password":      func(o *Options) { o.Password = "123456789" },
		"password NUL":  func(o *Options) { o.Password = "12\x0034" },
		"system_type":   func(o *Options) { o.SystemType = strings.Repeat("x", 13) },
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
