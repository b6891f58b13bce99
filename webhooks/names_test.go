package webhooks

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// names is a resolver that queries a test name server, which returns answer's
// addresses of that kind; nil: it never responds.
func names(t *testing.T, answer func(v6 bool) []netip.Addr) *net.Resolver {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		packet := make([]byte, 1500)
		for {
			n, from, err := server.ReadFrom(packet)
			if err != nil {
				return
			}
			if answer != nil && n > 12 {
				_, _ = server.WriteTo(reply(packet[:n], answer), from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
}

// reply is a DNS response (RFC 1035) to a query with one question. All its records
// have a TTL of zero.
func reply(query []byte, answer func(v6 bool) []netip.Addr) []byte {
	end := 12
	for query[end] != 0 {
		end += int(query[end]) + 1
	}
	kind := binary.BigEndian.Uint16(query[end+1:])
	end += 5 // the final zero, type and class
	found := answer(kind == 28)
	if kind != 1 && kind != 28 {
		found = nil
	}
	out := append([]byte(nil), query[:2]...)
	out = append(out, 0x81, 0x80, 0, 1, 0, byte(len(found)), 0, 0, 0, 0)
	out = append(out, query[12:end]...)
	for _, address := range found {
		out = append(out, 0xc0, 12)
		out = binary.BigEndian.AppendUint16(out, kind)
		out = append(out, 0, 1, 0, 0, 0, 0)
		out = binary.BigEndian.AppendUint16(out, uint16(len(address.AsSlice())))
		out = append(out, address.AsSlice()...)
	}
	return out
}

// TestNamesThatHang: the deadline includes the name look-up.
func TestNamesThatHang(t *testing.T) {
	opts := quickly()
	opts.resolver = names(t, nil)
	opts.Timeout = 300 * time.Millisecond
	for _, private := range []bool{true, false} {
		opts.AllowPrivate = private
		a := attempt(t, opts, "https://hangs.example/")
		if a.Status != 0 || a.Result != resultTimeout {
			t.Errorf("%+v", a)
		}
	}
}

// TestNamesThatLie: a name that is public when the endpoint is set and private at the
// call, among other addresses or alone, reaches nothing.
func TestNamesThatLie(t *testing.T) {
	inside, open := endpoint(t, func(c net.Conn) { say(c, ok+"Content-Length: 0\r\n\r\n") })
	_, port, _ := strings.Cut(strings.TrimPrefix(inside, "http://"), ":")
	opts := quickly()
	opts.AllowPrivate = false
	for _, lie := range []string{"127.0.0.1", "::1", "::ffff:127.0.0.1", "10.0.0.1", "169.254.169.254", "fd00::1",
		"64:ff9b::7f00:1", "0.0.0.0", "::"} {
		address := netip.MustParseAddr(lie)
		opts.resolver = names(t, func(v6 bool) []netip.Addr {
			if v6 == address.Is6() {
				return []netip.Addr{address}
			}
			return nil
		})
		if err := newGuard(false).checkURL("https://rebinds.example/"); err != nil {
			t.Fatalf("the name itself is refused: %v", err)
		}
		for _, url := range []string{"https://rebinds.example/", "https://rebinds.example:" + port + "/",
			"http://rebinds.example:" + port + "/"} {
			a := attempt(t, opts, url)
			if a.Result != resultBlocked || strings.Contains(a.Error, lie) {
				t.Errorf("%s at %s: %+v", url, lie, a)
			}
		}
	}
	if n := open.Load(); n != 0 {
		t.Errorf("%d connections reached the inside", n)
	}
}

// TestHandshakes: a call to a TLS server that hangs, drips or breaks ends by the
// deadline, and the record contains no addresses.
func TestHandshakes(t *testing.T) {
	opts := quickly()
	for name, try := range map[string]struct {
		behave func(net.Conn)
		result string
	}{
		"silence":    {untilGone, resultTimeout},
		"an alert":   {func(c net.Conn) { say(c, "\x15\x03\x03\x00\x02\x02\x28"); untilGone(c) }, resultTLS},
		"garbage":    {func(c net.Conn) { say(c, "HTTP/1.0 400 Bad Request\r\n\r\n"); untilGone(c) }, resultTLS},
		"one record": {func(c net.Conn) { say(c, "\x16\x03\x03\x40\x00"); drip("\x00")(c) }, resultTimeout},
		"a reset": {func(c net.Conn) {
			_, _ = c.Read(make([]byte, 10)) // of a longer hello: closing now resets
			_ = c.(*net.TCPConn).SetLinger(0)
		}, resultTLS},
	} {
		opts.Timeout = patience
		if try.result == resultTimeout {
			opts.Timeout = 300 * time.Millisecond
		}
		_, address, _ := strings.Cut(serve(t, try.behave), "http")
		a := attempt(t, opts, "https"+address)
		if a.Result != try.result || a.Status != 0 {
			t.Errorf("%s: %+v, want %s", name, a, try.result)
		}
		if strings.Contains(a.Error, "127.0.0.1") {
			t.Errorf("%s: the customer is told %q", name, a.Error)
		}
	}
}
