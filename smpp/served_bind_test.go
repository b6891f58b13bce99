package smpp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestBindAgainstPeer: our own client against our own server over TCP: three parts, their receipts, a rebind after the
// server's unbind, and an unbind of the client, in plain and in TLS.
func TestBindAgainstPeer(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("TLS %v", secure), func(t *testing.T) {
			var mu sync.Mutex
			var parts []string
			var roots *x509.CertPool
			d := newDoor(t, func(d *door) {
				d.request = func(r *Request) {
					mu.Lock()
					defer mu.Unlock()
					parts = append(parts, string(r.ShortMessage))
					r.Accept(fmt.Sprintf("01M8-%d", len(parts)))
				}
				if secure {
					ca := newTestCA(t)
					roots = ca.pool()
					d.ln = tls.NewListener(d.ln, &tls.Config{Certificates: []tls.Certificate{ca.certificate("gateway")},
						MinVersion: tls.VersionTLS12})
				}
			})
			receipts := make(chan *Delivery, 10)
			o := options(d.ln.Addr().String())
			o.SystemID, o.Password = "acme", "secret"
			o.Deliver = func(d *Delivery) { receipts <- d; d.Respond(StatusOK) }
			o.DrainTimeout, o.UnbindTimeout = patience, patience
			if secure {
				o.TLS = &tls.Config{ServerName: "gateway", RootCAs: roots}
			}
			b, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			b.retry.base, b.retry.most = 10*time.Millisecond, 10*time.Millisecond
			stop := runLink(t, b)
			for round := range 2 {
				waitBound(t, b)
				ours := <-d.peers
				var ids []string
				for part := range 3 {
					m := sample()
					m.ESMClass, m.ShortMessage = 0x40, []byte(fmt.Sprintf("\x05\x00\x03\x07\x03%cpart", part+1))
					results := make(chan Result, 1)
					if err := b.Submit(t.Context(), m, func(r Result) { results <- r }); err != nil {
						t.Fatal(err)
					}
					ids = append(ids, result(t, results).MessageID)
				}
				for _, id := range ids {
					r := sample()
					r.ESMClass, r.ShortMessage = 4, []byte("id:"+id+
						" sub:001 dlvrd:001 submit date:2611281200 done date:2611281201 stat:DELIVRD err:000 text:")
					r.TLVs = []TLV{{TagReceiptedMessageID, append([]byte(id), 0)}, {TagMessageState, []byte{2}}}
					results := make(chan Result, 1)
					if err := ours.Deliver(t.Context(), r, func(r Result) { results <- r }); err != nil {
						t.Fatal(err)
					}
					got := <-receipts
					if got.Receipt == nil || got.Receipt.ID != id || got.Receipt.Also[0] != "" || got.Receipt.State != "DELIVRD" {
						t.Errorf("%+v", got.Receipt)
					}
					if r := result(t, results); r.Outcome != Accepted {
						t.Errorf("%+v", r)
					}
				}
				if v := b.Snapshot().PeerVersion; v != Version34 {
					t.Errorf("version %#x", v)
				}
				if round == 0 {
					ours.Unbind("an operator", patience)
				} else {
					stop()
				}
				if err := d.end(); err != nil {
					t.Errorf("round %d: %v", round, err)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			want := []string{"\x05\x00\x03\x07\x03\x01part", "\x05\x00\x03\x07\x03\x02part", "\x05\x00\x03\x07\x03\x03part"}
			if !slices.Equal(parts, append(slices.Clone(want), want...)) {
				t.Errorf("%q", parts)
			}
		})
	}
}

// TestTraceOfPeer: a served session is traced as a link is, without texts, numbers and passwords.
func TestTraceOfPeer(t *testing.T) {
	t.Parallel()
	d := newDoor(t, func(d *door) { d.request = func(r *Request) { r.Refuse(0x40B, "siri") } })
	p, ours := d.bindAs(rawTransceiver, 0x34)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := make(chan TracedPDU, 100)
	var tracing sync.WaitGroup
	tracing.Go(func() {
		_ = ours.Trace(ctx, func(pdu TracedPDU) error { seen <- pdu; return nil })
	})
	until(t, "it looks", func() bool { return ours.tracers.list.Load() != nil })
	p.send(rawSubmit, 0, 1, deliverBody(0, 0, "ibanga")...)
	p.expect(rawSubmitResp)
	p.send(rawQuery, 0, 2, []byte("01M8\x00\x01\x0125779000000\x00")...)
	p.expect(0x80000003)
	p.send(rawTransceiver, 0, 3, bindBody("acme", "canary", 0x34)...)
	p.expect(rawTransceiver | 0x80000000)
	var all []string
	for range 6 {
		text, err := json.Marshal(<-seen)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(text))
	}
	cancel()
	tracing.Wait()
	shown := strings.Join(all, "\n")
	for _, secret := range []string{"ibanga", "siri", "25779000000", "canary"} {
		if strings.Contains(shown, secret) {
			t.Errorf("it shows %q: %s", secret, shown)
		}
	}
	if !strings.Contains(shown, `"link":"acme"`) || !strings.Contains(shown, `"message_id":"01M8"`) ||
		!strings.Contains(shown, "25779****00") {
		t.Errorf("it shows %s", shown)
	}
}

// BenchmarkServe is the inbound path of a Peer: a submit_sm is read, decoded and answered.
func BenchmarkServe(b *testing.B) {
	d := newDoor(b, func(d *door) { d.window = MaxServedWindow })
	p, _ := d.bindAs(rawTransceiver, 0x34)
	frame := rawSubmitFrame(sample())
	_ = p.conn.SetDeadline(time.Time{})
	slots := make(chan struct{}, MaxServedWindow)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		for {
			got, err := p.receive()
			if err != nil || got.command != rawSubmitResp || got.status != 0 {
				return
			}
			<-slots
		}
	}()
	var out []byte
	b.ReportAllocs()
	start := time.Now()
	for b.Loop() {
		select {
		case slots <- struct{}{}:
		default:
			if _, err := p.conn.Write(out); err != nil {
				b.Fatal(err)
			}
			out = out[:0]
			slots <- struct{}{}
		}
		out = append(out, frame...)
	}
	if _, err := p.conn.Write(out); err != nil {
		b.Fatal(err)
	}
	until(b, "all answered", func() bool { return len(slots) == 0 })
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "msg/s")
	_ = p.conn.Close()
	<-answered
}
