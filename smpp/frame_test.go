package smpp

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"
	"testing/iotest"
	"time"
)

func noDeadline(time.Time) error { return nil }

func TestFrameReader(t *testing.T) {
	var stream []byte
	var want []packet
	random := rand.New(rand.NewPCG(3, 3))
	for i := range 200 {
		size := random.IntN(300)
		if i%50 == 7 {
			size = readBuffer - 20 + random.IntN(40) // just below or above the buffer's size
		}
		if i%50 == 9 {
			size = maxPDU - 16
		}
		p := packet{uint32(random.Int32()), uint32(i), uint32(i), bytes.Repeat([]byte{byte(i)}, size)}
		want = append(want, p)
		stream = append(stream, encodeRaw(p)...)
	}
	for name, r := range map[string]io.Reader{
		"whole":       bytes.NewReader(stream),
		"one by one":  iotest.OneByteReader(bytes.NewReader(stream)),
		"half reads":  iotest.HalfReader(bytes.NewReader(stream)),
		"data at EOF": iotest.DataErrReader(bytes.NewReader(stream)),
	} {
		frames := newFrameReader(r, noDeadline)
		for i, w := range want {
			h, body, err := frames.next()
			if err != nil {
				t.Fatalf("%s, PDU %d: %v", name, i, err)
			}
			if uint32(h.command) != w.command || uint32(h.status) != w.status || h.sequence != w.sequence ||
				!bytes.Equal(body, w.body) {
				t.Fatalf("%s, PDU %d: got %+v", name, i, h)
			}
		}
		if _, _, err := frames.next(); !errors.Is(err, errPeerClose) {
			t.Errorf("%s: at the end %v", name, err)
		}
	}
}

func TestFrameReaderCutOff(t *testing.T) {
	whole := encodeRaw(packet{1, 0, 1, []byte("body")})
	for n := 1; n < len(whole); n++ {
		_, _, err := newFrameReader(bytes.NewReader(whole[:n]), noDeadline).next()
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// Impossible lengths allocate no memory.
func TestFrameReaderBounds(t *testing.T) {
	for _, head := range []string{"\x00\x00\x00\x00", "\x00\x00\x00\x0f", "\x00\x01\x11\x71", "\x80\x00\x00\x00",
		"\xff\xff\xff\xff", "HTTP", "GET "} {
		stream := append([]byte(head), bytes.Repeat([]byte("x"), 64)...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := newFrameReader(bytes.NewReader(stream), noDeadline).next()
		runtime.ReadMemStats(&after)
		if !errors.Is(err, errLength) && !errors.Is(err, errNotSMPP) {
			t.Errorf("%q: %v", head, err)
		}
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<10 {
			t.Errorf("%q: %d bytes allocated", head, grown)
		}
	}
}

func FuzzReadPDU(f *testing.F) {
	f.Add(encodeRaw(packet{rawDeliver, 0, 1, deliverBody(4, 0, receiptText)}), true)
	f.Add([]byte("HTTP/1.1 200 OK\r\n\r\n"), false)
	f.Add([]byte{0, 0, 0, 16, 0x80, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1}, false)
	f.Add([]byte{0, 1, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3}, true)
	f.Fuzz(func(t *testing.T, stream []byte, pieces bool) {
		var r io.Reader = bytes.NewReader(stream)
		if pieces {
			r = iotest.HalfReader(r)
		}
		frames := newFrameReader(r, noDeadline)
		taken := 0
		for {
			h, body, err := frames.next()
			if cap(frames.large) > maxPDU {
				t.Fatalf("%d bytes allocated", cap(frames.large))
			}
			if err != nil {
				return
			}
			whole := encodeRaw(packet{uint32(h.command), uint32(h.status), h.sequence, body})
			if !bytes.Equal(whole, stream[taken:taken+len(whole)]) {
				t.Fatal("a PDU that is not in the stream")
			}
			taken += len(whole)
			_ = messageID(body)
			if h.command == cmdDeliverSM || h.command == cmdDataSM {
				_, _ = Reading{}.decode(h.command, bytes.Clone(body), time.Time{})
			}
		}
	})
}
