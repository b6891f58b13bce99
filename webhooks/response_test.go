package webhooks

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// oddAnswers are responses whose status is readable and whose head, body or end is unusual. net/http refuses most of
// them.
var oddAnswers = map[string]struct {
	answer string
	status int
	result string
	kept   bool // the connection serves the next call
}{
	"length and chunks": {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		200, result2xx, false},
	"chunks and length": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n",
		200, result2xx, false},
	"empty length":    {"HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n", 200, result2xx, false},
	"length 1.0":      {"HTTP/1.1 200 OK\r\nContent-Length: 1.0\r\n\r\n", 200, result2xx, false},
	"length +2":       {"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok", 200, result2xx, false},
	"negative length": {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", 200, result2xx, false},
	"length of 30 digits": {"HTTP/1.1 200 OK\r\nContent-Length: 999999999999999999999999999999\r\n\r\nok", 200,
		result2xx, false},
	"two lengths": {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok", 200, result2xx,
		false},
	"the same length twice":  {"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok", 200, result2xx, false},
	"space before the colon": {"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok", 200, result2xx, false},
	"bare line feeds":        {"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", 200, result2xx, true},
	"bytes that no header has": {"HTTP/1.1 200 OK\r\nX-\x00\xff\x80: \x01\x02\r\n\xe9t\xe9: 1\r\nContent-Length: " +
		"2\r\n\r\nok", 200, result2xx, true},
	"a line without a colon": {"HTTP/1.1 200 OK\r\nnonsense\r\nContent-Length: 2\r\n\r\nok", 200, result2xx, false},
	"a name in brackets":     {"HTTP/1.1 200 OK\r\nX(Note): y\r\nContent-Length: 2\r\n\r\nok", 200, result2xx, true},
	"a Latin-1 name": {"HTTP/1.1 200 OK\r\nX-Pr\xe9nom: y\r\nContent-Length: 2\r\n\r\nok", 200, result2xx,
		true},
	"coding identity": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nok", 200,
		result2xx, false},
	"an empty coding": {"HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n\r\nok", 200, result2xx, false},
	"20 KiB of cookies": {"HTTP/1.1 200 OK\r\n" + strings.Repeat("Set-Cookie: a="+strings.Repeat("b", 1000)+
		"\r\n", 20) + "Content-Length: 2\r\n\r\nok", 200, result2xx, false},
	"a reason without a space": {"HTTP/1.1 200OK\r\nContent-Length: 0\r\n\r\n", 200, result2xx, true},
	"a reason behind a comma":  {"HTTP/1.1 200, OK\r\nContent-Length: 0\r\n\r\n", 200, result2xx, true},
	"a reason in UTF-8":        {"HTTP/1.1 200 D\u2019accord\r\nContent-Length: 0\r\n\r\n", 200, result2xx, true},
	"no version":               {"HTTP 200 OK\r\nContent-Length: 0\r\n\r\n", 200, result2xx, false},
	"an odd version":           {"HTTP/1.1.0 200 OK\r\nContent-Length: 0\r\n\r\n", 200, result2xx, false},
	"a wrong Retry-After": {"HTTP/1.1 200 OK\r\nRetry-After: later\r\nContent-Length: 0\r\n\r\n", 200, result2xx,
		true},
	"only carriage returns": {"HTTP/1.1 200 OK\rContent-Length: 0\r\r", 200, result2xx, false},
	"a line without a name": {"HTTP/1.1 200 OK\r\n: x\r\nContent-Length: 2\r\n\r\nok", 200, result2xx, true},
	"a folded line": {"HTTP/1.1 200 OK\r\nX-A: b\r\n c: d\r\nContent-Length: 2\r\n\r\nok", 200, result2xx,
		false},
	"a folded first line": {"HTTP/1.1 200 OK\r\n X-A: b\r\nContent-Length: 2\r\n\r\nok", 200, result2xx, false},
	"an unknown coding": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\nx", 200, result2xx,
		false},
	"chunked twice": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: " +
		"chunked\r\n\r\n0\r\n\r\n", 200, result2xx, false},
	"broken chunks": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n", 200, result2xx,
		false},
	"chunks": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 200,
		result2xx, true},
	"chunks with a trailer": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n",
		200, result2xx, false},
	"HTTP/1.0": {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, result2xx, false},
	"HTTP/1.0, chunked": {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200, result2xx,
		false},
	"HTTP/2":              {"HTTP/2 200\r\n\r\n", 200, result2xx, false},
	"no reason":           {"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", 200, result2xx, true},
	"no reason, a space":  {"HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", 200, result2xx, true},
	"two spaces":          {"HTTP/1.1  200 OK\r\nContent-Length: 0\r\n\r\n", 200, result2xx, true},
	"a tab":               {"HTTP/1.1\t200 OK\r\nContent-Length: 0\r\n\r\n", 200, result2xx, true},
	"small letters":       {"http/1.1 200 ok\r\ncontent-length: 0\r\n\r\n", 200, result2xx, false},
	"an empty line first": {"\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, result2xx, true},
	"100, then 200": {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200,
		result2xx, true},
	"103, 102, then 204": {"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 102\r\n\r\nHTTP/1.1 204 No " +
		"Content\r\n\r\n", 204, result2xx, true},
	"103 with odd lines, then 200": {"HTTP/1.1 103 Early Hints\r\nodd\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		200, result2xx, true},
	"204 with a length":            {"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n", 204, result2xx, true},
	"a body that is cut":           {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", 200, result2xx, false},
	"a body longer than announced": {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more", 200, result2xx, false},
	"chunks that are cut": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nok", 200, result2xx,
		false},
	"closed without a body":   {"HTTP/1.1 200 OK\r\n\r\n", 200, result2xx, false},
	"closed within the head":  {"HTTP/1.1 200 OK\r\nContent-Le", 200, result2xx, false},
	"closed after the status": {"HTTP/1.1 200", 200, result2xx, false},
	"a head of 1 MB": {"HTTP/1.1 200 OK\r\n" + strings.Repeat("X: "+strings.Repeat("y", 97)+"\r\n", 10_000) +
		"\r\n", 200, result2xx, false},
	"a header line of 1 MB": {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", 1_000_000) + "\r\n\r\n", 200,
		result2xx, false},
	"a long header line": {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", 9_000) +
		"\r\nContent-Length: 0\r\n\r\n", 200, result2xx, true},
	"close": {"HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 2\r\n\r\nok", 200,
		result2xx, false},
	"a redirect with an odd head": {"HTTP/1.1 302 Found\r\nLocation : /x\r\nContent-Length: x\r\n\r\n", 302, result3xx,
		false},
	"a failure with an odd head": {"HTTP/1.1 500\nContent-Length: 1.0\n\nno", 500, result5xx, false},
	"a status of two digits":     {"HTTP/1.1 20 OK\r\n\r\n", 0, resultOther, false},
	"a status of four digits":    {"HTTP/1.1 2000 OK\r\n\r\n", 0, resultOther, false},
	"a status with a letter":     {"HTTP/1.1 2x0 OK\r\n\r\n", 0, resultOther, false},
	"another protocol":           {"ICY 200 OK\r\n\r\n", 0, resultOther, false},
	"no status line":             {"<html>200 OK</html>\r\n\r\n", 0, resultOther, false},
	"only empty lines":           {strings.Repeat("\r\n", 100), 0, resultOther, false},
	"nothing":                    {"", 0, resultOther, false},
	"a status line of 1 MB":      {"HTTP/1.1 200 " + strings.Repeat("y", 1_000_000) + "\r\n\r\n", 200, result2xx, false},
	"100 and the end":            {"HTTP/1.1 100 Continue\r\n\r\n", 0, resultOther, false},
	"early hints up to the limit": {strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 1000) +
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 0, resultOther, false},
	"a body of 60 KiB": {"HTTP/1.1 200 OK\r\nContent-Length: 61440\r\n\r\n" + strings.Repeat("y", 61440), 200,
		result2xx, true},
	"a body of 64 KiB": {"HTTP/1.1 200 OK\r\nContent-Length: 65536\r\n\r\n" + strings.Repeat("y", 65536), 200,
		result2xx, false},
}

// TestOddAnswers: a status that was read decides, whatever else the response holds. The connection is kept only if the
// end of the response is certain: what follows must not pass for the next one.
func TestOddAnswers(t *testing.T) {
	for name, odd := range oddAnswers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var connections atomic.Int64
			url := serve(t, func(c net.Conn) {
				connections.Add(1)
				in := bufio.NewReader(c)
				for {
					request, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, request.Body)
					if !say(c, odd.answer) {
						return
					}
					if !odd.kept { // nothing more comes, and the response ends here
						_ = c.(*net.TCPConn).CloseWrite()
						_, _ = io.Copy(io.Discard, in) // unread data would become a reset
						return
					}
				}
			})
			opts := quickly()
			call := callWith(t, New(nil, opts), url)
			for range 2 {
				if a := call(); a.Status != odd.status || a.Result != odd.result {
					t.Errorf("%+v, want %d %s", a, odd.status, odd.result)
				}
			}
			want := int64(2)
			if odd.kept {
				want = 1
			}
			if n := connections.Load(); n != want {
				t.Errorf("%d connections of two calls, want %d", n, want)
			}
		})
	}
}

// TestOddAnswersStayOpen: a response without a certain end is not waited for beyond what the result needs, the deadline
// at most.
func TestOddAnswersStayOpen(t *testing.T) {
	for name, odd := range oddAnswers {
		if odd.result != result2xx || odd.kept {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := quickly()
			opts.Timeout = 2 * time.Second
			url, open := endpoint(t, func(c net.Conn) { say(c, odd.answer); untilGone(c) })
			if a := attempt(t, opts, url); a.Result != odd.result {
				t.Errorf("%+v, want %s", a, odd.result)
			}
			eventually(t, "no connection left", func() bool { return open.Load() == 0 })
		})
	}
}
