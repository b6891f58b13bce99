package dashboard

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"intumwa/accounts"
	"intumwa/accounts/people"
	"intumwa/campaigns"
	"intumwa/dashboard/web"
)

// fileForm returns a form with a file.
func fileForm(t *testing.T, name string, content []byte, fields ...string) (contentType string, body []byte) {
	t.Helper()
	var out bytes.Buffer
	to := multipart.NewWriter(&out)
	for i := 0; i < len(fields); i += 2 {
		_ = to.WriteField(fields[i], fields[i+1])
	}
	file, err := to.CreateFormFile("file", name)
	if err == nil {
		_, err = file.Write(content)
	}
	if err == nil {
		err = to.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return to.FormDataContentType(), out.Bytes()
}

// heapPeak samples the heap without its garbage until stop is called, which returns the highest sample above the
// first, in MiB.
func heapPeak() (stop func() int) {
	runtime.GC()
	var first, now runtime.MemStats
	runtime.ReadMemStats(&first)
	end, ended, peak := make(chan struct{}), make(chan struct{}), uint64(0)
	go func() {
		defer close(ended)
		for {
			runtime.GC()
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapAlloc)
			select {
			case <-end:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	return func() int {
		close(end)
		<-ended
		return int(peak-first.HeapAlloc) >> 20
	}
}

// TestMemoryOfUploads: as many documents and small files as strangers may upload at the same time, all of them held
// back before their last byte and then ended together, need little memory.
func TestMemoryOfUploads(t *testing.T) {
	w := loneWorld(t, func(_ *Deps, o *Options) {
		o.TrustedProxies, o.AtOnce, o.AtOnceOfOne = []string{"127.0.0.1"}, 8,
			4
	})
	address, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	const documents, files = 32, 128
	var cookies []string
	for i := range (documents + files) / web.UploadsOfCompany {
		email := fmt.Sprintf("u%d@example.com", i)
		w.exec(`insert into users (email, name, password_hash) values ($1, 'x', 'none')`, email)
		w.company(email, fmt.Sprintf("C%d", i))
		u, err := w.people.UserByEmail(t.Context(), email)
		if err != nil {
			t.Fatal(err)
		}
		token, _, err := w.sessions.OpenSession(t.Context(), u, people.Browser{Address: "192.0.2.1"})
		if err != nil {
			t.Fatal(err)
		}
		cookies = append(cookies, token)
	}
	documentType, document := fileForm(t, "rc.pdf", append([]byte("%PDF-1.7\n"), make([]byte, accounts.MaxDocument-9)...))
	fileType, file := fileForm(t, "list.csv", append([]byte("phone_number;x\n"),
		bytes.Repeat([]byte("79000001;abcdefghij\n"), (campaigns.MaxSmallFile-20)/20)...),
		"name", "x", "sender", "DEMO", "template", "{{x}}", "encoding", "", "numbers", "")
	stop := heapPeak()
	var sent, all sync.WaitGroup
	finish := make(chan struct{})
	var mu sync.Mutex
	got := map[string]int{}
	for i := range documents + files {
		path, kind, body := "/company/document", documentType, document
		if i >= documents {
			path, kind, body = "/campaigns", fileType, file
		}
		sent.Add(1)
		all.Go(func() {
			conn, err := net.Dial("tcp", address.Host)
			if err != nil {
				t.Error(err)
				sent.Done()
				return
			}
			defer func() { _ = conn.Close() }()
			_ = conn.SetDeadline(time.Now().Add(2 * patience))
			_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nX-Forwarded-For: 192.0.2.%d\r\nContent-Type: "+
				"%s\r\nCookie: intumwa-session=%s\r\nContent-Length: %d\r\n\r\n",
				path, address.Host, i, kind, cookies[i/web.UploadsOfCompany], len(body))
			if err == nil {
				_, err = conn.Write(body[:len(body)-1])
			}
			sent.Done()
			<-finish
			if err == nil {
				_, err = conn.Write(body[len(body)-1:])
			}
			answer := make([]byte, 12)
			if err == nil {
				_, _ = conn.Read(answer) // nothing counts too
			}
			mu.Lock()
			got[path+" "+strings.TrimPrefix(string(answer), "HTTP/1.1")]++
			mu.Unlock()
		})
	}
	sent.Wait()
	var held runtime.MemStats
	runtime.ReadMemStats(&held)
	close(finish)
	all.Wait()
	peak := stop()
	t.Logf("held: %d MiB in all, peak: %d MiB above idle; %v", held.HeapAlloc>>20, peak, got)
	if peak > 200 {
		t.Errorf("%d MiB", peak)
	}
}

// TestMemoryOfDownloads: documents that are read slowly need little memory.
func TestMemoryOfDownloads(t *testing.T) {
	w := loneWorld(t, func(_ *Deps, o *Options) { o.TrustedProxies = []string{"127.0.0.1"} })
	var slow []*client
	for i := range 32 {
		c := newClient(w)
		email := fmt.Sprintf("u%d@example.com", i)
		w.exec(`insert into users (email, name, password_hash) values ($1, 'x', 'none')`, email)
		w.document(w.company(email, fmt.Sprintf("C%d", i)).ID)
		u, err := w.people.UserByEmail(t.Context(), email)
		if err != nil {
			t.Fatal(err)
		}
		token, _, err := w.sessions.OpenSession(t.Context(), u, people.Browser{})
		if err != nil {
			t.Fatal(err)
		}
		c.address = fmt.Sprintf("192.0.2.%d", i)
		c.plant(token)
		slow = append(slow, c)
	}
	stop := heapPeak()
	for _, c := range slow {
		if _, line := c.begin("/company/document"); !strings.Contains(line, " 200 ") {
			t.Fatal(line)
		}
	}
	peak := stop()
	t.Logf("peak: %d MiB above idle", peak)
	if peak > 60 {
		t.Errorf("%d MiB", peak)
	}
}
