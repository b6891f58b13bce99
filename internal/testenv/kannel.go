package testenv

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"intumwa/tools/rig"
)

// Kannel is bearerbox and smsbox of Kannel, as a customer's program.
type Kannel struct {
	testing.TB

	sendsms string
	reports *httptest.Server

	mu   sync.Mutex
	said []string // reports and MOs, as they came
}

const kannelConf = `group = core
admin-port = %[1]s
admin-password = x
smsbox-port = %[2]s
box-allow-ip = 127.0.0.1
store-type = file
store-location = %[6]s/store
dlr-storage = internal
sms-resend-freq = 2
log-level = 1

group = smsbox
bearerbox-host = 127.0.0.1
sendsms-port = %[3]s
log-level = 1
immediate-sendsms-reply = true

%[4]s
group = sendsms-user
username = u
password = p
max-messages = 5
concatenation = true

group = sms-service
keyword = default
get-url = "%[5]s/mo?from=%%p&text=%%a"
max-messages = 0
`

// NewKannel starts both programs until the test ends. group is the group of kannel.conf for the SMSC.
func NewKannel(t testing.TB, group string) *Kannel {
	t.Helper()
	bearerbox := Tool(t, "bearerbox")
	k := &Kannel{TB: t}
	k.reports = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.said = append(k.said, r.URL.String())
	}))
	t.Cleanup(k.reports.Close)
	dir, ports := t.TempDir(), [3]string{}
	for i := range ports {
		_, ports[i], _ = net.SplitHostPort(rig.FreeAddress())
	}
	conf := filepath.Join(dir, "kannel.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, kannelConf, ports[0], ports[1], ports[2], group, k.reports.URL, dir),
		0o600); err != nil {
		t.Fatal(err)
	}
	k.sendsms = fmt.Sprintf("http://127.0.0.1:%s/cgi-bin/sendsms", ports[2])
	k.run(bearerbox, dir, func() error {
		conn, err := net.Dial("tcp", "127.0.0.1:"+ports[1])
		if err == nil {
			_ = conn.Close()
		}
		return err
	})
	k.run(filepath.Join(filepath.Dir(bearerbox), "smsbox"), dir, func() error { // it listens before it serves
		answer, err := http.Get(k.sendsms)
		if err != nil {
			return err
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusForbidden { // the question has no password
			return fmt.Errorf("it answers %s", answer.Status)
		}
		return nil
	})
	return k
}

// run starts a program and waits until it is ready.
func (k *Kannel) run(name, dir string, ready func() error) {
	k.Helper()
	cmd := exec.CommandContext(k.Context(), name, filepath.Join(dir, "kannel.conf"))
	cmd.Dir = dir
	if err := cmd.Start(); err != nil {
		k.Fatal(err)
	}
	k.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		err := ready()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			k.Fatalf("%s is not ready: %v", name, err)
		}
	}
}

// Send sends a text from ACME through Kannel, which reports every event of it with the reference. more are parameters
// of sendsms (name=value) that replace these.
func (k *Kannel) Send(reference, text string, more ...string) {
	k.Helper()
	query := url.Values{"username": {"u"}, "password": {"p"}, "from": {"ACME"}, "to": {"25779123456"}, "text": {text},
		"dlr-mask": {"31"}, "dlr-url": {k.reports.URL + "/dlr?of=" + reference + "&report=%d&id=%F&reply=%A"}}
	for _, one := range more {
		name, value, _ := strings.Cut(one, "=")
		query.Set(name, value)
	}
	answer, err := http.Get(k.sendsms + "?" + query.Encode())
	if err != nil {
		k.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if body, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusAccepted {
		k.Fatalf("Kannel answers %d %s", answer.StatusCode, body)
	}
}

// Heard returns what Kannel called with that beginning: /dlr?of=REFERENCE&report=8&id=…, /mo?from=…
func (k *Kannel) Heard(beginning string) (list []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.said {
		if strings.HasPrefix(s, beginning) {
			list = append(list, s)
		}
	}
	return list
}
