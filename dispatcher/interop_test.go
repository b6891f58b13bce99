package dispatcher_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"intumwa/dispatcher/profile"
	"intumwa/dispatcher/setup"
	"intumwa/internal/testenv"
)

// nodeSMPP is an SMSC built on the npm package smpp, in its own process. It prints one
// event per line.
type nodeSMPP struct {
	*testing.T
	stdin io.WriteCloser
	mu    sync.Mutex
	list  []nodeEvent
}

func startNodeSMPP(t *testing.T) *nodeSMPP {
	t.Helper()
	n := &nodeSMPP{T: t}
	node, npm, dir := testenv.Tool(t, "node"), testenv.Tool(t, "npm"), t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "node-smpp"))); err != nil {
		t.Fatal(err)
	}
	install := exec.Command(npm, "install", "--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts",
		"--prefer-offline")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		testenv.Lacks(t, fmt.Sprintf("the npm package smpp cannot be installed here: %v\n%s", err, out))
	}
	cmd := exec.CommandContext(t.Context(), node, "server.js") // killed when the test ends
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		n.stdin, err = cmd.StdinPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			var e nodeEvent
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				t.Errorf("%q: %v", lines.Text(), err)
			}
			n.mu.Lock()
			n.list = append(n.list, e)
			n.mu.Unlock()
		}
	}()
	t.Cleanup(func() { <-read; _ = cmd.Wait() })
	return n
}

func (n *nodeSMPP) events(kind string) (list []nodeEvent) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range n.list {
		if e.Event == kind {
			list = append(list, e)
		}
	}
	return list
}

// nodeEvent is a line of testdata/node-smpp/server.js.
type nodeEvent struct {
	Event, SystemID, Text, Source, Dest, Validity, UDH, Payload, SAR string
	Port, Version, SourceTON, DestTON, ESMClass, DataCoding          int
	Registered, Status                                               int
}

// TestNodeSMPP: the dispatcher with an SMSC built on the npm package smpp: bind,
// texts in both alphabets, long texts in every form, receipts with the id in
// another base, an MO, enquire_link, unbind from either side.
//
// Source: rule carriers 8.7.
func TestNodeSMPP(t *testing.T) {
	t.Parallel()
	testenv.Long(t) // in make test, go-smpp decodes what smpp writes
	node := startNodeSMPP(t)
	w := newWorld(t)
	w.until("node-smpp listens", func() bool { return len(node.events("listening")) == 1 })
	at := &sim{address: fmt.Sprintf("127.0.0.1:%d", node.events("listening")[0].Port)}
	forms := map[string]profile.Concat{"udh8": profile.ConcatUDH8, "sar": profile.ConcatSAR,
		"payload": profile.ConcatPayload}
	var carriers []setup.Carrier
	for name, concat := range forms {
		carriers = append(carriers, named(name, at, func(c *setup.Carrier) {
			c.Concat = concat
			c.Links[0].EnquireLink = 300 * time.Millisecond
		}))
	}
	w.start(carriers...)
	w.until("node-smpp says the binds", func() bool { return len(node.events("bind")) == len(forms) })
	if bind := node.events("bind"); bind[0].SystemID != "intumwa" || bind[0].Version != 0x34 {
		t.Errorf("node-smpp was bound as %+v", bind)
	}

	texts := []string{"Muraho @£$¥èéùìòÇ", "[]{}~\\|^€", strings.Repeat("Bonjour à tous {€} ", 25), "Ça coûte: ê œ 😀",
		strings.Repeat("ê😀", 60)}
	want := map[string]string{}
	var ids []int64
	for name := range forms {
		for _, text := range texts {
			to := w.number("00")
			want[to.Digits()] = text
			ids = append(ids, w.send(note{to: to, text: text, carrier: name})...)
		}
	}
	failed := w.sendVia("udh8", 3, "01")
	w.await("sent", 20*time.Second, ids...)
	w.await("failed", 20*time.Second, failed...)
	segments := w.count(`SELECT count(*) FROM segments`)
	w.until("node-smpp says the segments", func() bool { return len(node.events("submit")) >= segments })
	got := map[string]string{}
	for _, e := range node.events("submit") { // segments come in order
		got[e.Dest] += e.Text + e.Payload
		if e.Source != "DEMO" || e.SourceTON != 5 || e.DestTON != 1 || e.Registered != 1 {
			t.Errorf("node-smpp read %+v", e)
		}
		if e.UDH != "" && (e.ESMClass != 0x40 || !strings.HasPrefix(e.UDH, "0003")) { // it removes the length byte
			t.Errorf("node-smpp read esm_class %#x with UDH %s", e.ESMClass, e.UDH)
		}
	}
	for to, text := range want {
		if got[to] != text {
			t.Errorf("node-smpp read %q, want %q", got[to], text)
		}
	}
	for _, e := range node.events("receipt_answered") {
		if e.Status != 0 {
			t.Errorf("a receipt was answered with %#x", e.Status)
		}
	}
	w.until("enquire_link", func() bool { return len(node.events("enquire_link")) > 0 })

	_, _ = io.WriteString(node.stdin, "text\n")
	w.until("the text is kept and answered", func() bool {
		return w.count(`SELECT count(*) FROM inbound WHERE body = 'Amakuru é @ €'`) == len(forms) &&
			len(node.events("text_answered")) == len(forms)
	})
	_, _ = io.WriteString(node.stdin, "unbind\n")
	w.until("it is bound again", func() bool { return len(node.events("bind")) == 2*len(forms) })
	w.await("sent", 20*time.Second, w.sendVia("udh8", 5, "00")...)
	w.stop()
	w.until("it was unbound from", func() bool { return len(node.events("unbind")) == len(forms) })
	for _, kind := range []string{"error", "unknown"} {
		if list := node.events(kind); len(list) > 0 {
			t.Errorf("node-smpp complained: %+v", list)
		}
	}
}
