package dashboard

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"intumwa/accounts"
	"intumwa/dashboard/web"
	"intumwa/internal/throttle"
)

// document gives a company a document that is larger than the socket buffers.
func (w *world) document(company int64) {
	w.t.Helper()
	w.exec(`insert into company_facts (company_id, document, document_name, document_type, document_size, document_at)
		values ($1, convert_to(repeat('0123456789abcdef', $2 / 16), 'UTF8'), 'rc.pdf', 'application/pdf', $2, now())`,
		company, accounts.MaxDocument)
}

// begin requests a page and reads only the first line of the response.
func (c *client) begin(path string) (conn net.Conn, line string) {
	c.t.Helper()
	address, err := url.Parse(c.w.url)
	if err != nil {
		c.t.Fatal(err)
	}
	if conn, err = net.Dial("tcp", address.Host); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.(*net.TCPConn).SetReadBuffer(4096)
	_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nX-Forwarded-For: %s\r\nCookie: intumwa-session=%s\r\n\r\n",
		path, address.Host, c.address, c.cookie("intumwa-session"))
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	if line, err = bufio.NewReaderSize(conn, 16).ReadString('\n'); err != nil {
		c.t.Fatal(err)
	}
	return conn, line
}

// TestSlowReaders: the companies of one network address that read no download leave room for others, and customers
// leave room for administrators.
func TestSlowReaders(t *testing.T) {
	w := newWorld(t, func(_ *Deps, o *Options) { o.TrustedProxies = []string{"127.0.0.1"} })
	w.d.site.Patience = time.Hour // they keep their places, however slow the machine is
	var refused, begun int
	var count sync.Mutex
	var all sync.WaitGroup
	for i := range web.DownloadsOfOrigin/web.DownloadsOfOne + 1 {
		slow, _, company := w.customer(fmt.Sprintf("mallory%d", i), fmt.Sprintf("MAL%d", i), 0)
		w.document(company.ID)
		for range web.DownloadsOfOne {
			all.Go(func() {
				_, line := slow.begin("/company/document")
				count.Lock()
				defer count.Unlock()
				begun += strings.Count(line, " 200 ")
				refused += strings.Count(line, " 429 ")
			})
		}
	}
	all.Wait()
	if begun != web.DownloadsOfOrigin || refused != web.DownloadsOfOne {
		t.Fatalf("%d downloads began, %d were refused", begun, refused)
	}
	other, _, company := w.customer("bob", "BOBCO", 0)
	other.address = "192.0.2.2"
	w.document(company.ID)
	a := other.get("/company/document")
	other.wants(a, http.StatusOK)
	if len(a.body) != accounts.MaxDocument || a.Header.Get("Content-Type") != "application/pdf" ||
		strings.Count(a.body, "0123456789abcdef") != accounts.MaxDocument/16 {
		t.Errorf("%d bytes, %v", len(a.body), a.Header)
	}
	other.wants(other.get("/statement.csv"), http.StatusOK)

	for i := range int64(web.DownloadsOfAll - web.DownloadsOfOrigin) {
		leave, err := w.d.site.Downloads.Enter(t.Context(), -i)
		if err != nil {
			t.Fatal(i, err)
		}
		defer leave()
	}
	other.wants(other.get("/messages.csv"), http.StatusTooManyRequests, "Too many downloads")
	admin := newClient(w)
	admin.inside("root@example.com")
	admin.wants(admin.get(fmt.Sprintf("/admin/companies/%d/document", company.ID)), http.StatusOK)
}

// TestDownloadsEnd: a client that reads nothing, or a byte now and then, loses its download and so its turn.
func TestDownloadsEnd(t *testing.T) {
	w := newWorld(t, nil)
	w.d.site.Patience = 300 * time.Millisecond
	c, _, company := w.customer("aline", "ISOKO", 0)
	w.document(company.ID)
	c.begin("/company/document")
	slow, _ := c.begin("/company/document")
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = slow.SetReadDeadline(time.Now().Add(2 * patience))
		_, _ = io.Copy(io.Discard, slowReader{slow}) // it is cut
	}()
	w.until("a download is possible again", func() bool { return c.get("/company/document").StatusCode == http.StatusOK })
	w.until("two are", func() bool {
		status := make(chan int, 2)
		for range cap(status) {
			go func() { status <- c.get("/company/document").StatusCode }()
		}
		first, second := <-status, <-status
		return first == http.StatusOK && second == http.StatusOK
	})
	_ = slow.Close()
	<-done
}

// TestDownloadsWaitWithoutTurn: a download that waits for others of its company holds no turn at the database, which
// all pages need.
func TestDownloadsWaitWithoutTurn(t *testing.T) {
	w := newWorld(t, func(_ *Deps, o *Options) { o.AtOnce = 1 })
	c, _, company := w.customer("aline", "ISOKO", 0)
	w.document(company.ID)
	for range web.DownloadsOfOne {
		leave, err := w.d.site.Downloads.Enter(t.Context(), company.ID)
		if err != nil {
			t.Fatal(err)
		}
		defer leave()
	}
	longest := func(path string) (most time.Duration) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.wants(c.get(path), http.StatusTooManyRequests)
		}()
		for {
			start := time.Now()
			if leave, err := w.d.site.Turns.Enter(t.Context(), -1); err == nil {
				leave()
			}
			most = max(most, time.Since(start))
			select {
			case <-done:
				return most
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	for _, path := range []string{"/company/document", "/messages.csv"} {
		waited := longest(path)
		for range 4 { // a busy machine delays a page now and then, the fault each time
			if waited > throttle.TurnWait*7/10 {
				waited = longest(path)
			}
		}
		if waited > throttle.TurnWait*7/10 {
			t.Errorf("while %s waits, a page waits for %s", path, waited)
		}
	}
}

// slowReader reads a byte now and then.
type slowReader struct{ io.Reader }

func (r slowReader) Read(p []byte) (int, error) {
	time.Sleep(time.Millisecond)
	return r.Reader.Read(p[:1])
}
