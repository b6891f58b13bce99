package smpp

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"testing"
	"time"
)

// echo answers every submit_sm, many in one write: the cheapest possible carrier.
func echo(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	in := make([]byte, 0, 256<<10)
	var out []byte
	for {
		if len(in) == cap(in) {
			return
		}
		n, err := conn.Read(in[len(in):cap(in)])
		if err != nil {
			return
		}
		in = in[:len(in)+n]
		out = out[:0]
		rest := in
		for len(rest) >= 16 {
			size := int(binary.BigEndian.Uint32(rest))
			if len(rest) < size {
				break
			}
			command := binary.BigEndian.Uint32(rest[4:])
			sequence := binary.BigEndian.Uint32(rest[12:])
			out = append(out, encodeRaw(packet{command | 0x80000000, 0, sequence, []byte("0123456789\x00")})...)
			rest = rest[size:]
		}
		in = in[:copy(in[:cap(in)], rest)]
		if _, err := conn.Write(out); err != nil {
			return
		}
	}
}

func BenchmarkSubmit(b *testing.B) {
	for _, window := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("window=%d", window), func(b *testing.B) {
			c := newCarrier(b)
			go func() {
				conn, err := c.ln.Accept()
				if err == nil {
					echo(conn)
				}
			}()
			o := options(c.ln.Addr().String())
			o.Window = window
			l, stop := run(b, o)
			defer stop()
			waitBound(b, l)
			m := sample()
			ctx := context.Background()
			b.ReportAllocs()
			start := time.Now()
			for b.Loop() {
				if err := l.Submit(ctx, m, func(Result) {}); err != nil {
					b.Fatal(err)
				}
			}
			until(b, "all answered", func() bool { return l.Snapshot().InFlight == 0 })
			b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "msg/s")
		})
	}
}

// BenchmarkDeliver is the inbound path: a deliver_sm is read, its receipt decoded and
// answered.
func BenchmarkDeliver(b *testing.B) {
	const unanswered = 500
	c := newCarrier(b)
	l, stop := run(b, options(c.ln.Addr().String()))
	defer stop()
	p := c.bound()
	waitBound(b, l)
	receipt := encodeRaw(packet{rawDeliver, 0, 1, deliverBody(4, 0, receiptText)})
	_ = p.conn.SetDeadline(time.Time{})
	slots := make(chan struct{}, unanswered)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		for {
			got, err := p.receive()
			if err != nil || got.command != rawDeliverResp || got.status != 0 {
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
		out = append(out, receipt...)
	}
	if _, err := p.conn.Write(out); err != nil {
		b.Fatal(err)
	}
	until(b, "all answered", func() bool { return len(slots) == 0 })
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "receipts/s")
	_ = p.conn.Close()
	<-answered
}
