package smppserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/accounts/keys"
	"intumwa/internal/testenv"
	"intumwa/smppserver/binds"
	"intumwa/sms"
)

// program is a customer's program of other people's making: testdata/node/client.js and testdata/perl/client.pl.
type program struct {
	*bank
	stdin io.WriteCloser

	mu   sync.Mutex
	said []said
}

// said is a line of a program.
type said struct {
	Event, ID, Text string
	Status, State   int
}

func (w *bank) program(p *process, name string, arguments ...string) *program {
	w.Helper()
	host, port, err := net.SplitHostPort(p.address)
	if err != nil {
		w.Fatal(err)
	}
	cmd := exec.CommandContext(w.Context(), name, append(arguments, host, port, w.key.SystemID, w.password)...)
	cmd.Stderr = os.Stderr
	out := &program{bank: w}
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		out.stdin, err = cmd.StdinPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			var s said
			if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
				w.Errorf("%q: %v", lines.Text(), err)
			}
			out.mu.Lock()
			out.said = append(out.said, s)
			out.mu.Unlock()
		}
	}()
	w.Cleanup(func() { _ = out.stdin.Close(); <-read; _ = cmd.Wait() })
	return out
}

// heard returns what the program said of a kind.
func (p *program) heard(event string) (list []said) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.said {
		if s.Event == event {
			list = append(list, s)
		}
	}
	return list
}

func (p *program) tell(word string) {
	p.Helper()
	if _, err := io.WriteString(p.stdin, word+"\n"); err != nil {
		p.Fatal(err)
	}
}

// tryProgram lets a program bind, send a text, a text in UCS-2 and three parts, get receipts and an MO, and bind again.
func (w *bank) tryProgram(p *program, unicode string) {
	w.Helper()
	w.until("the bind", func() bool { return len(p.heard("bound")) == 1 })
	p.tell("send")
	w.until("five answers", func() bool { return len(p.heard("answer")) == 5 })
	ids := map[string]bool{}
	for _, s := range p.heard("answer") {
		if s.Status != 0 || len(s.ID) != 26 {
			w.Errorf("answer %+v", s)
		}
		ids[s.ID] = true
	}
	rows, _ := w.pool.Query(context.Background(), `SELECT concat_ws('|', body, part) FROM messages ORDER BY id`)
	bodies, err := pgx.CollectRows(rows, pgx.RowTo[string])
	want := []string{"Amahoro @ €", unicode, "Mwa|11207425", "ramu|11207426", "tse|11207427"}
	slices.Sort(bodies) // programs may answer in any order
	slices.Sort(want)
	if err != nil || !slices.Equal(bodies, want) {
		w.Errorf("recorded %q, %v; want %q", bodies, err, want)
	}
	w.finish(sms.Sent, "")
	w.until("five receipts", func() bool { return len(p.heard("receipt")) == 5 })
	for _, s := range p.heard("receipt") {
		if !ids[s.ID] || s.State != 2 || !strings.HasPrefix(s.Text, "id:"+s.ID+" sub:001 dlvrd:001 ") ||
			!strings.Contains(s.Text, " stat:DELIVRD err:000 ") {
			w.Errorf("receipt %+v", s)
		}
	}
	w.mo("Yego")
	w.until("the MO", func() bool { return len(p.heard("mo")) == 1 })
	if got := p.heard("mo")[0]; got.Text != "Yego" {
		w.Errorf("MO %+v", got)
	}
	p.tell("send")
	w.until("five more answers", func() bool { return len(p.heard("answer")) == 10 })
	p.tell("unbind")
	w.until("the end of the bind", func() bool { return len(p.heard("closed")) == 1 })
	w.finish(sms.Failed, "EXPIRED 001")
	p.tell("bind")
	w.until("five more receipts on the next bind", func() bool { return len(p.heard("receipt")) == 10 })
}

func (w *bank) mo(text string) {
	w.Helper()
	if err := pgx.BeginFunc(context.Background(), w.pool, func(tx pgx.Tx) error {
		return binds.Add(context.Background(), tx, []binds.Delivery{
			{Account: w.key.ID, Number: "+25779000001", Address: "8080", At: time.Now(), Body: text}})
	}); err != nil {
		w.Fatal(err)
	}
}

// TestNodeClient: the npm package smpp as a customer's program.
func TestNodeClient(t *testing.T) {
	t.Parallel()
	node, npm, dir := testenv.Tool(t, "node"), testenv.Tool(t, "npm"), t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "node"))); err != nil {
		t.Fatal(err)
	}
	install := exec.Command(npm, "install", "--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts",
		"--prefer-offline")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		testenv.Lacks(t, fmt.Sprintf("the npm package smpp cannot be installed here: %v\n%s", err, out))
	}
	w := newBank(t, 100, keys.SMPPLimits{})
	w.tryProgram(w.program(w.start(), node, filepath.Join(dir, "client.js")), "Ça coûte 😀")
}

// TestPerlClient: Net::SMPP as a customer's program.
func TestPerlClient(t *testing.T) {
	t.Parallel()
	perl := testenv.Tool(t, "perl")
	testenv.Tool(t, "/usr/share/perl5/Net/SMPP.pm")
	w := newBank(t, 100, keys.SMPPLimits{})
	w.tryProgram(w.program(w.start(), perl, filepath.Join("testdata", "perl", "client.pl")), "Ca coûte 😀")
}
