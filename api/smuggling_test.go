package api

import (
	"strconv"
	"strings"
	"testing"
)

// Requests whose end a proxy and we could see in different places are refused,
// and what follows them is not taken for another request.
func TestSmugglingForms(t *testing.T) {
	w := newWorld(t, worldOptions{}).settle()
	body := single("79123456", "ACME", "x")
	head := "POST /v1/sms HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer " + w.tokens["live"] + "\r\n"
	hidden := head + "Content-Length: " + strconv.Itoa(len(body)) + "\r\nConnection: close\r\n\r\n" + body
	for name, text := range map[string]string{
		"two lengths":                 head + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n{    " + hidden,
		"two lengths in a list":       head + "Content-Length: 5, 6\r\n\r\n{    " + hidden,
		"a length with a sign":        head + "Content-Length: +5\r\n\r\n{    " + hidden,
		"a length below zero":         head + "Content-Length: -1\r\n\r\n" + hidden,
		"a length in hex":             head + "Content-Length: 0x5\r\n\r\n{    " + hidden,
		"another encoding":            head + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + hidden,
		"chunked twice":               head + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n" + hidden,
		"two encodings":               head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + hidden,
		"a space before the colon":    head + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + hidden,
		"a folded line":               head + "X-Folded: a\r\n Content-Length: 5\r\nTransfer-Encoding\r\n : chunked\r\n\r\n0\r\n\r\n" + hidden,
		"a control character":         head + "Content-Length\x00: 5\r\n\r\n{    " + hidden,
		"a chunk of no size":          head + "Transfer-Encoding: chunked\r\n\r\nG\r\n{\r\n0\r\n\r\n" + hidden,
		"a chunk of negative size":    head + "Transfer-Encoding: chunked\r\n\r\n-1\r\n{\r\n0\r\n\r\n" + hidden,
		"a chunk beyond all sizes":    head + "Transfer-Encoding: chunked\r\n\r\n10000000000000001\r\n{\r\n0\r\n\r\n" + hidden,
		"a chunk longer than it says": head + "Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n" + hidden,
	} {
		got := w.rawTo(w.server.Listener.Addr(), text)
		if n := strings.Count(got, "HTTP/1.1 "); n != 1 || strings.Contains(got, "HTTP/1.1 2") {
			t.Errorf("%s: %d answers: %q", name, n, got)
		}
	}
	if n := w.count(`SELECT count(*) FROM messages`); n != 0 {
		t.Errorf("%d messages were accepted", n)
	}
	if got := w.rawTo(w.server.Listener.Addr(), hidden); !strings.Contains(got, "HTTP/1.1 200") {
		t.Errorf("what was hidden is refused by itself: %q", got)
	}
}
