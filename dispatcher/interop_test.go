package dispatcher_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"intumwa/dispatcher"
	"intumwa/internal/testenv"
)

// foreign is a message centre that we did not write, in a process of its own.
type foreign struct {
	*testing.T
	stdin io.WriteCloser
	mu    sync.Mutex
	lines []string
}

func startForeign(t *testing.T, dir, name string, args ...string) *foreign {
	t.Helper()
	f := &foreign{T: t}
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		f.stdin, err = cmd.StdinPipe()
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
			f.mu.Lock()
			f.lines = append(f.lines, lines.Text())
			f.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = f.stdin.Close() // it ends with its standard input, or is ended
		stop := time.AfterFunc(2*time.Second, func() { _ = cmd.Process.Kill() })
		<-read
		_ = cmd.Wait()
		stop.Stop()
		if t.Failed() {
			t.Logf("%s said:\n%s", name, strings.Join(f.said(), "\n"))
		}
	})
	return f
}

func (f *foreign) said() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.lines)
}

// installNodeSMPP puts node-smpp into a directory of the test.
func installNodeSMPP(t *testing.T) (dir string) {
	t.Helper()
	testenv.Tool(t, "node")
	npm := testenv.Tool(t, "npm")
	dir = t.TempDir()
	for _, name := range []string{"package.json", "server.js"} {
		text, err := os.ReadFile(filepath.Join("testdata", "node-smpp", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	install := exec.Command(npm, "install", "--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts", "--prefer-offline")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		testenv.Lacks(t, fmt.Sprintf("the npm package smpp cannot be installed here: %v\n%s", err, out))
	}
	return dir
}

// nodeEvent is a line of testdata/node-smpp/server.js.
type nodeEvent struct {
	Event, SystemID, Text, Source, Dest, Validity, UDH, Payload, SAR string
	Port, Version, SourceTON, DestTON, ESMClass, DataCoding          int
	Registered, Status                                               int
}

func (f *foreign) events(kind string) (list []nodeEvent) {
	f.Helper()
	for _, line := range f.said() {
		var e nodeEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			f.Fatalf("%q: %v", line, err)
		}
		if e.Event == kind {
			list = append(list, e)
		}
	}
	return list
}

// TestNodeSMPP: the dispatcher with a message centre made of the npm package
// smpp: bind, texts in both alphabets, long ones in every form, receipts with
// the id in another base, a text from a handset, enquire_link, unbind from
// either side.
//
// Source: rule carriers 8.7.
func TestNodeSMPP(t *testing.T) {
	t.Parallel()
	dir := installNodeSMPP(t)
	node := startForeign(t, dir, "node", "server.js")
	w := newWorld(t)
	w.until("node-smpp listens", func() bool { return len(node.events("listening")) == 1 })
	at := &sim{address: fmt.Sprintf("127.0.0.1:%d", node.events("listening")[0].Port)}
	forms := map[string]dispatcher.Concat{"udh8": dispatcher.ConcatUDH8, "sar": dispatcher.ConcatSAR, "payload": dispatcher.ConcatPayload}
	var carriers []dispatcher.Carrier
	for name, concat := range forms {
		carriers = append(carriers, named(name, at, func(c *dispatcher.Carrier) {
			c.Concat = concat
			c.Links[0].EnquireLink = 300 * time.Millisecond
		}))
	}
	w.start(carriers...)
	w.until("node-smpp says the binds", func() bool { return len(node.events("bind")) == len(forms) })
	if bind := node.events("bind"); bind[0].SystemID != "intumwa" || bind[0].Version != 0x34 {
		t.Errorf("node-smpp was bound as %+v", bind)
	}

	texts := []string{"Muraho @£$¥èéùìòÇ", "[]{}~\\|^€", strings.Repeat("Bonjour à tous {€} ", 25), "Ça coûte: ê œ 😀", strings.Repeat("ê😀", 60)}
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
		if e.UDH != "" && (e.ESMClass != 0x40 || !strings.HasPrefix(e.UDH, "0003")) { // it takes the length octet off
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
		return w.count(`SELECT count(*) FROM inbound WHERE body = 'Amakuru é @ €'`) == len(forms) && len(node.events("text_answered")) == len(forms)
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
