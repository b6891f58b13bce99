package testenv

import (
	"context"
	"errors"
	"net"
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
