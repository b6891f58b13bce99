package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"testing"

	"intumwa/internal/testenv"
)

// TestConnect: config check --connect says of each who is there, in words, and never a password.
func TestConnect(t *testing.T) {
	_, plain := playCarrier(t, "leo")
	cert, key := testenv.Certificate(t)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	door, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		t.Fatal(err)
	}
	defer door.Close()
	go func() {
		for {
			conn, err := door.Accept()
			if err != nil {
				return
			}
			go func() { _ = conn.(*tls.Conn).Handshake(); _ = conn.Close() }()
		}
	}()
	rdb, prefix := testenv.Redis(t)
	config := func(database, redis string, links ...string) string {
		text := "database: {" + database + "}\nredis: {" + redis + fmt.Sprintf(", prefix: %q}\n", prefix) +
			"mail: {server: " + plain + ", from: a@example.com}\ncarriers:\n  - name: leo\n    links:\n"
		for i, link := range links {
			text += fmt.Sprintf("      - {name: leo-%d, system_id: s, password: geheim, %s}\n", i, link)
		}
		return text
	}
	well := config(fmt.Sprintf("url: %q", testenv.Database(t)), fmt.Sprintf("url: %q", redisURL(rdb)),
		fmt.Sprintf("address: %q", plain), fmt.Sprintf("address: %q, tls: {ca: %q, server_name: localhost}", door.Addr(), cert))
	code, stdout, _ := newShell(t, well).run("", "config", "check", "--connect")
	for _, want := range []string{"is sound\n", "\ndatabase: PostgreSQL ", "answers and commits; its schema is this binary's\n", "\nredis: Redis answers", "\nmail.server: " + plain + " takes connections\n",
		"\ncarriers[0].links[0] (leo-0): " + plain + " takes connections;", "\ncarriers[0].links[1] (leo-1): " + door.Addr().String() + " speaks TLS; its certificate is good until "} {
		if code != exitOK || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, %q is missing in\n%s", code, want, stdout)
		}
	}
	nobody := freeAddress(t)
	host, port, _ := net.SplitHostPort(nobody)
	ill := config(fmt.Sprintf("host: %s, port: %s, user: u, password: 'ge@heim/#'", host, port), fmt.Sprintf("host: %s, port: %s, password: geheim", host, port),
		fmt.Sprintf("address: %q", nobody), fmt.Sprintf("address: %q, tls: {server_name: localhost}", door.Addr()), fmt.Sprintf("address: %q, tls: {ca: %q}", door.Addr(), cert),
		fmt.Sprintf("address: %q, tls: true", plain), "address: 'nobody.invalid:2775'")
	code, stdout, stderr := newShell(t, ill).run("", "config", "check", "--connect")
	for key, want := range map[string]string{"database": "nothing listens there", "redis": "nothing listens there", "(leo-0)": "nothing listens there",
		"(leo-1)": "its certificate is of an authority that is not trusted here", "(leo-2)": "its certificate is for another name", "(leo-4)": "nam"} {
		found := false
		for line := range strings.Lines(stdout) {
			found = found || strings.Contains(line, key+": NOT reached: ") && strings.Contains(line, want)
		}
		if !found {
			t.Errorf("nothing of %s and %q in\n%s", key, want, stdout)
		}
	}
	if code != exitError || !strings.Contains(stderr, "7 of 8 could not be reached, or are not fit") || strings.Contains(stdout+stderr, "heim") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if _, stdout, _ := newShell(t, well).run("", "config", "check", "--connect", "--roles", "webhooks"); strings.Contains(stdout, "leo") || strings.Contains(stdout, "mail") {
		t.Errorf("a process with webhooks alone speaks to no carrier:\n%s", stdout)
	}
}
