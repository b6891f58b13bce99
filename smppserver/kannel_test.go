package smppserver_test

import (
	"crypto/tls"
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

	"intumwa/accounts"
	"intumwa/internal/testenv"
	"intumwa/sms"
)

// kannel is bearerbox and smsbox of Kannel, with our server as its SMSC.
type kannel struct {
	*bank
	sendsms string
	reports *httptest.Server

	mu   sync.Mutex
	said []string // reports and MOs, as they came
}

const kannelConf = `group = core
admin-port = %[1]d
admin-password = x
smsbox-port = %[2]d
box-allow-ip = 127.0.0.1
store-type = file
store-location = %[6]s/store
dlr-storage = internal
log-level = 1

group = smsbox
bearerbox-host = 127.0.0.1
sendsms-port = %[3]d
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

// startKannel starts both programs.
func (w *bank) startKannel(p *process) *kannel {
	w.Helper()
	bearerbox := testenv.Tool(w, "bearerbox")
	k := &kannel{bank: w}
	k.reports = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.said = append(k.said, r.URL.String())
	}))
	w.Cleanup(k.reports.Close)
	dir, ports := w.TempDir(), [3]int{}
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			w.Fatal(err)
		}
		ports[i] = l.Addr().(*net.TCPAddr).Port
		_ = l.Close()
	}
	conf := filepath.Join(dir, "kannel.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, kannelConf, ports[0], ports[1], ports[2], w.kannelGroup(p), k.reports.URL, dir), 0o600); err != nil {
		w.Fatal(err)
	}
	k.sendsms = fmt.Sprintf("http://127.0.0.1:%d/cgi-bin/sendsms", ports[2])
	run := func(name string, ready int) {
		cmd := exec.CommandContext(w.Context(), name, conf)
		cmd.Dir = dir
		if err := cmd.Start(); err != nil {
			w.Fatal(err)
		}
		w.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		w.until(name+" listens", func() bool {
			conn, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", ready))
			if err != nil {
				return false
			}
			_ = conn.Close()
			return true
		})
	}
	run(bearerbox, ports[1])
	run(filepath.Join(filepath.Dir(bearerbox), "smsbox"), ports[2])
	return k
}

// kannelGroup is the group that the page for customers shows, for a process behind TLS.
func (w *bank) kannelGroup(p *process) string {
	w.Helper()
	sample, err := os.ReadFile("../api/docs/samples/kannel.txt")
	if err != nil {
		w.Fatal(err)
	}
	_, port, err := net.SplitHostPort(w.behindTLS(p.address))
	if err != nil {
		w.Fatal(err)
	}
	group := string(sample)
	for _, own := range [][2]string{{"smpp.example.com", "127.0.0.1"}, {"2776", port}, {"SYSTEM_ID", w.key.SystemID}, {"PASSWORD", w.password},
		{"reconnect-delay = 10", "reconnect-delay = 1"}} {
		if !strings.Contains(group, own[0]) {
			w.Fatalf("the page's sample lacks %s", own[0])
		}
		group = strings.Replace(group, own[0], own[1], 1)
	}
	return group
}

// behindTLS returns the address of a listener with TLS 1.2 or newer that passes connections on to another address.
func (w *bank) behindTLS(address string) string {
	w.Helper()
	pair, err := tls.LoadX509KeyPair(testenv.Certificate(w))
	if err != nil {
		w.Fatal(err)
	}
	door, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = door.Close() })
	pass := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		_ = to.Close()
	}
	go func() {
		for {
			outside, err := door.Accept()
			if err != nil {
				return
			}
			inside, err := net.Dial("tcp", address)
			if err != nil {
				_ = outside.Close()
				continue
			}
			go pass(inside, outside)
			go pass(outside, inside)
		}
	}()
	return door.Addr().String()
}

// send sends a text through Kannel; it reports every event of it with the reference.
func (k *kannel) send(reference, text string, more ...string) {
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

// heard counts what Kannel reported with that beginning.
func (k *kannel) heard(beginning string) (list []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.said {
		if strings.HasPrefix(s, beginning) {
			list = append(list, s)
		}
	}
	return list
}

// TestKannelClient: Kannel, with the configuration of the page /docs/smpp, binds to us over TLS, sends GSM 7-bit, Unicode and three parts, and gets their receipts, also on the next
// bind, and an MO. Without credits it sends a message once.
func TestKannelClient(t *testing.T) {
	t.Parallel()
	w := newBank(t, 5, accounts.SMPPLimits{})
	p := w.start()
	k := w.startKannel(p)
	k.send("a", "Amahoro @ {EUR}")
	k.send("b", "Ça coûte ж", "coding=2", "charset=UTF-8")
	k.send("c", strings.Repeat("Mwaramutse ", 40)) // 440 characters
	w.until("five messages", func() bool { return w.count(`SELECT count(*) FROM messages`) == 5 })
	if n := w.count(`SELECT count(*) FROM messages WHERE part IS NOT NULL AND body LIKE '%Mwaramutse%'`); n != 3 {
		t.Errorf("%d parts", n)
	}
	if n := w.count(`SELECT count(*) FROM messages WHERE body IN ('Amahoro @ {EUR}', 'Ça coûte ж')`); n != 2 {
		t.Errorf("%d of the short texts are as they were", n)
	}
	w.until("Kannel knows that they are accepted", func() bool { return len(k.heard("/dlr?of=a&report=8"))+len(k.heard("/dlr?of=b&report=8")) == 2 })
	w.finish(sms.Sent, "")
	w.until("their receipts", func() bool {
		return len(k.heard("/dlr?of=a&report=1&")) == 1 && len(k.heard("/dlr?of=b&report=1&")) == 1 && len(k.heard("/dlr?of=c&report=1&")) >= 1
	})
	w.mo("Yego")
	w.until("the MO", func() bool { return len(k.heard("/mo?")) == 1 })
	if got := k.heard("/mo?")[0]; got != "/mo?from=%2B25779000001&text=Yego" && got != "/mo?from=25779000001&text=Yego" {
		t.Errorf("MO %s", got)
	}

	k.send("d", "without credits") // 0x40B is final
	w.until("Kannel gives up", func() bool { return len(k.heard("/dlr?of=d&report=16")) == 1 })
	if reply := k.heard("/dlr?of=d&report=16")[0]; !strings.Contains(reply, "0x0000040b") && !strings.Contains(reply, "1035") {
		t.Errorf("Kannel heard %s", reply)
	}

	w.exec(`UPDATE balances SET credits = 5`)
	w.exec(`INSERT INTO ledger (company_id, kind, amount, balance_after) VALUES (1, 'adjustment', 5, 5)`)
	k.send("e", "before the restart")
	w.until("one more message", func() bool { return w.count(`SELECT count(*) FROM messages`) == 6 })
	p.stop()
	w.finish(sms.Failed, "UNDELIV 001")
	w.startAt(p.address)
	w.until("Kannel is bound again", func() bool { return w.count(`SELECT count(*) FROM smpp_binds`) == 1 })
	w.until("the receipt on the next bind", func() bool { return len(k.heard("/dlr?of=e&report=2&")) == 1 })
}
