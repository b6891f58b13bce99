package smppserver_test

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"intumwa/accounts/keys"
	"intumwa/internal/testenv"
	"intumwa/sms"
)

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
	for _, own := range [][2]string{{"smpp.example.com", "127.0.0.1"}, {"2776", port}, {"SYSTEM_ID", w.key.SystemID},
		{"PASSWORD", w.password},
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
	door, err := tls.Listen("tcp", "127.0.0.1:0",
		&tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}})
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

// TestKannelClient: Kannel, with the configuration of the page /docs/smpp, binds to us over TLS, sends GSM 7-bit,
// Unicode and three parts, and gets their receipts, also on the next bind, and an MO. Without credits it sends a
// message once.
func TestKannelClient(t *testing.T) {
	t.Parallel()
	w := newBank(t, 5, keys.SMPPLimits{})
	p := w.start()
	k := testenv.NewKannel(t, w.kannelGroup(p))
	k.Send("a", "Amahoro @ {EUR}")
	k.Send("b", "Ça coûte ж", "coding=2", "charset=UTF-8")
	k.Send("c", strings.Repeat("Mwaramutse ", 40)) // 440 characters
	w.until("five messages", func() bool { return w.count(`SELECT count(*) FROM messages`) == 5 })
	if n := w.count(`SELECT count(*) FROM messages WHERE part IS NOT NULL AND body LIKE '%Mwaramutse%'`); n != 3 {
		t.Errorf("%d parts", n)
	}
	if n := w.count(`SELECT count(*) FROM messages WHERE body IN ('Amahoro @ {EUR}', 'Ça coûte ж')`); n != 2 {
		t.Errorf("%d of the short texts are as they were", n)
	}
	w.until("Kannel knows that they are accepted",
		func() bool { return len(k.Heard("/dlr?of=a&report=8"))+len(k.Heard("/dlr?of=b&report=8")) == 2 })
	w.finish(sms.Sent, "")
	w.until("their receipts", func() bool {
		return len(k.Heard("/dlr?of=a&report=1&")) == 1 && len(k.Heard("/dlr?of=b&report=1&")) == 1 &&
			len(k.Heard("/dlr?of=c&report=1&")) >= 1
	})
	w.mo("Yego")
	w.until("the MO", func() bool { return len(k.Heard("/mo?")) == 1 })
	if got := k.Heard("/mo?")[0]; got != "/mo?from=%2B25779000001&text=Yego" && got != "/mo?from=25779000001&text=Yego" {
		t.Errorf("MO %s", got)
	}

	k.Send("d", "without credits") // 0x40B is final
	w.until("Kannel gives up", func() bool { return len(k.Heard("/dlr?of=d&report=16")) == 1 })
	if reply := k.Heard("/dlr?of=d&report=16")[0]; !strings.Contains(reply, "0x0000040b") &&
		!strings.Contains(reply, "1035") {
		t.Errorf("Kannel heard %s", reply)
	}

	w.exec(`UPDATE balances SET credits = 5`)
	w.exec(`INSERT INTO ledger (company_id, kind, amount, balance_after) VALUES (1, 'adjustment', 5, 5)`)
	k.Send("e", "before the restart")
	w.until("one more message", func() bool { return w.count(`SELECT count(*) FROM messages`) == 6 })
	p.stop()
	w.finish(sms.Failed, "UNDELIV 001")
	w.startAt(p.address)
	w.until("Kannel is bound again", func() bool { return w.count(`SELECT count(*) FROM smpp_binds`) == 1 })
	w.until("the receipt on the next bind", func() bool { return len(k.Heard("/dlr?of=e&report=2&")) == 1 })
}
