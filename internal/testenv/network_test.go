package testenv

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Hosts reach each other and this process, and what is cut off is lost without a word, both
// ways and for that pair alone, until it is healed.
func TestNetwork(t *testing.T) {
	if !Apart(t) {
		return
	}
	n := NewNetwork(t)
	here, other := n.Here("here"), n.Here("other")
	one, two := n.Host("one"), n.Host("two")
	if out, err := one.Command("hostname").Output(); err != nil || strings.TrimSpace(string(out)) != "one" {
		t.Errorf("a host is called %s, %v", out, err)
	}
	port := map[*Host]string{}
	for _, h := range []*Host{here, other} {
		listener, err := net.Listen("tcp", h.Address+":0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		_, port[h], _ = net.SplitHostPort(listener.Addr().String())
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				from, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
				_, _ = conn.Write([]byte(from + "\n"))
				_ = conn.Close()
			}
		}()
	}
	bash := Tool(t, "bash")
	asks := func(from, to *Host) (answer string, err error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		cmd := from.Command(bash, "-c", "read -r line </dev/tcp/"+to.Address+"/"+port[to]+" && echo $line")
		var said strings.Builder
		cmd.Stdout = &said
		if err := cmd.Start(); err != nil {
			return "", err
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case err = <-ended:
		case <-ctx.Done():
			_ = cmd.Process.Kill()
			err = errors.Join(ctx.Err(), <-ended)
		}
		return strings.TrimSpace(said.String()), err
	}
	reaches := func(from, to *Host) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; {
			answer, err := asks(from, to)
			if answer == from.Address {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s asks %s and hears %q, %v", from.Name, to.Name, answer, err)
			}
		}
	}
	for _, from := range []*Host{one, two} {
		reaches(from, here)
		reaches(from, other)
	}
	n.Cut(one, here)
	n.Cut(here, one) // it is already
	if answer, err := asks(one, here); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("what is cut off hears %q, %v", answer, err)
	}
	reaches(one, other)
	reaches(two, here)
	n.Heal(here, one)
	n.Heal(one, here)
	reaches(one, here)
}

// listed names a file in which TestNetworkOfAKilledTest says which processes hold its hosts.
const listed = "INTUMWA_TESTENV_HOSTS"

// TestNetworkOfAKilledTest makes a network and waits to be killed, when it is told where to
// say so.
func TestNetworkOfAKilledTest(t *testing.T) {
	file := os.Getenv(listed)
	if file == "" || !Apart(t) {
		return
	}
	n := NewNetwork(t)
	text := strconv.Itoa(os.Getpid()) + " " + strconv.Itoa(n.router) + " " + strconv.Itoa(n.Host("one").holder)
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err == nil {
		_ = os.Rename(file+".new", file)
	}
	select {}
}

// Nothing is left of a network when the test that made it is killed.
func TestNetworkEndsWithAKilledTest(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	if !Apart(t) { // where none can be made there is nothing to see
		cmd := exec.Command(os.Args[0], "-test.run=^TestNetworkOfAKilledTest$")
		cmd.Env = append(os.Environ(), listed+"="+file)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var text []byte
		until(t, "it has a network", func() bool {
			text, _ = os.ReadFile(file)
			return len(text) > 0
		})
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		for pid := range strings.FieldsSeq(string(text)) {
			until(t, "process "+pid+" is gone", func() bool {
				stat, err := os.ReadFile("/proc/" + pid + "/stat")
				return err != nil || strings.Contains(string(stat), ") Z ")
			})
		}
	}
}

func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}
