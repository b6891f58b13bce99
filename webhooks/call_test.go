package webhooks

import (
	"bytes"
	"net"
	"testing"
	"time"
)

// BenchmarkCall is one call to an endpoint over a connection that is kept alive;
// the receiver allocates nothing.
func BenchmarkCall(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				answer, room := []byte("HTTP/1.1 204 No Content\r\n\r\n"), make([]byte, 4096)
				for n := 0; ; {
					got, err := conn.Read(room[n:])
					if err != nil {
						return
					}
					if n += got; bytes.HasSuffix(room[:n], []byte("}}")) {
						n = 0
						if _, err := conn.Write(answer); err != nil {
							return
						}
					}
				}
			}()
		}
	}()
	opts := Options{AllowPrivate: true}.withDefaults()
	w := New(nil, opts)
	c := newCaller(b.Context(), opts, w.guard)
	b.Cleanup(c.close)
	t, err := w.newTarget(storedEndpoint{url: "http://" + l.Addr().String() + "/hook", secret: newSecret()})
	if err != nil {
		b.Fatal(err)
	}
	j := job{id: 8, at: time.Now(), number: "+25761234567"}
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if a, _, ok := c.call(t, &j); !ok || a.Status != 204 {
				b.Errorf("%+v", a)
			}
		}
	})
}
