package carriersim

import (
	"bufio"
	"encoding/binary"
	"io"
	"strconv"
	"testing"
	"time"
)

// BenchmarkSubmit measures submit_sm with receipts over loopback TCP, client
// included: one operation is a submit_sm, its response, a receipt and its answer.
func BenchmarkSubmit(b *testing.B) {
	for _, window := range []int{1, 10, 100, 1000} {
		b.Run("window="+strconv.Itoa(window), func(b *testing.B) {
			c, addr := serve(b, Options{NoFates: true, ReceiptWindow: max(window, 10)})
			k := bound(b, addr)
			b.ReportAllocs()
			b.ResetTimer()
			k.flood(b, window, b.N)
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "submits/s")
			if s := c.Stats(); s.Accepted != uint64(b.N) || s.Receipts != uint64(b.N) || s.Violations > 0 {
				b.Errorf("%+v", s)
			}
		})
	}
}

// flood submits n messages, window of them unanswered at a time, and answers
// every receipt; it is over when the last receipt is answered.
func (k *client) flood(b *testing.B, window, n int) {
	var frame []byte
	frame = append(frame, make([]byte, 16)...)
	frame = append(frame, usual("25779000000", "Your code is 000000000. It is valid for ten minutes, tell nobody.").body()...)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)))
	binary.BigEndian.PutUint32(frame[4:], 4)
	digits := len(frame) - len("000000000. It is valid for ten minutes, tell nobody.")
	r, w := bufio.NewReaderSize(k.conn, 64<<10), bufio.NewWriterSize(k.conn, 64<<10)
	sent, answered, receipts := 0, 0, 0
	var ack [17]byte
	binary.BigEndian.PutUint32(ack[:], 17)
	binary.BigEndian.PutUint32(ack[4:], 0x80000005)
	_ = k.conn.SetDeadline(time.Now().Add(5 * time.Minute))
	for receipts < n {
		for sent < n && sent-answered < window {
			sent++
			binary.BigEndian.PutUint32(frame[12:], uint32(sent))
			for i, v := digits+8, sent; i >= digits; i, v = i-1, v/10 {
				frame[i] = byte('0' + v%10)
			}
			_, _ = w.Write(frame)
		}
		if r.Buffered() == 0 {
			if err := w.Flush(); err != nil {
				b.Fatal(err)
			}
		}
		head, err := r.Peek(16)
		if err != nil {
			b.Fatal(err)
		}
		length, command := int(binary.BigEndian.Uint32(head)), binary.BigEndian.Uint32(head[4:])
		switch command {
		case 0x80000004:
			if head[11] != 0 {
				b.Fatalf("status % x", head[8:12])
			}
			answered++
		case 5:
			receipts++
			copy(ack[12:], head[12:16])
			_, _ = w.Write(ack[:])
		}
		if _, err := io.CopyN(io.Discard, r, int64(length)); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkDecodeSubmit(b *testing.B) {
	body := usual("25779000000", "Your code is 123456. It is valid for ten minutes, tell nobody.").body()
	var m submit
	b.ReportAllocs()
	for b.Loop() {
		decodeSubmit(body, &m, GSM7, noon)
	}
}
