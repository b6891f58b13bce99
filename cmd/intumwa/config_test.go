package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"intumwa/internal/testenv"
	"intumwa/tools/rig"
)

// TestConfigCheckConnect: config check --connect prints which servers answer, and no password.
func TestConfigCheckConnect(t *testing.T) {
	_, plain := playCarrier(t, "leo", "")
	cert, key := testenv.Certificate(t)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	server, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			go func() { _ = conn.(*tls.Conn).Handshake(); _ = conn.Close() }()
		}
	}()
	rdb, prefix := testenv.Redis(t)
	config := func(database, redis string, links ...string) string {
		text := "database: {" + database + "}\nredis: {" + redis + fmt.Sprintf(", prefix: %q}\n", prefix) +
			"mail: {url: 'smtp://" + plain + "', from: a@example.com}\ncarriers:\n  - name: leo\n    links:\n"
		for i, link := range links {
			text += fmt.Sprintf("      - {name: leo-%d, system_id: s, password: geheim, %s}\n", i, link)
		}
		return text
	}
	well := config(fmt.Sprintf("url: %q", testenv.Database(t)), fmt.Sprintf("url: %q", redisURL(rdb)),
		fmt.Sprintf("address: %q", plain), fmt.Sprintf("address: %q, tls: {ca: %q, server_name: localhost}", server.Addr(),
			cert))
	code, stdout, _ := newShell(t, well).run("", "config", "check", "--connect")
	for _, want := range []string{"is sound\n", "\ndatabase: PostgreSQL ",
		"answers and commits; its schema is this binary's\n", "\nredis: Redis answers", "\nmail.url: " + plain +
			" takes connections\n",
		"\ncarriers[0].links[0] (leo-0): " + plain + " takes connections;", "\ncarriers[0].links[1] (leo-1): " +
			server.Addr().String() + " speaks TLS; its certificate is good until "} {
		if code != exitOK || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, %q is missing in\n%s", code, want, stdout)
		}
	}
	closed := rig.FreeAddress()
	broken := config("url: 'postgres://u:ge%40heim%2F%23@"+closed+"/d'", "url: 'redis://:geheim@"+closed+"'",
		fmt.Sprintf("address: %q", closed), fmt.Sprintf("address: %q, tls: {server_name: localhost}", server.Addr()),
		fmt.Sprintf("address: %q, tls: {ca: %q}", server.Addr(), cert),
		fmt.Sprintf("address: %q, tls: true", plain), "address: 'unknown.invalid:2775'")
	code, stdout, stderr := newShell(t, broken).run("", "config", "check", "--connect")
	for key, want := range map[string]string{"database": "connection refused", "redis": "connection refused",
		"(leo-0)": "connection refused",
		"(leo-1)": "unknown authority", "(leo-2)": "cannot validate certificate", "(leo-3)": "TLS",
		"(leo-4)": "unknown.invalid"} {
		found := false
		for line := range strings.Lines(stdout) {
			found = found || strings.Contains(line, key+": NOT reached: ") && strings.Contains(line, want)
		}
		if !found {
			t.Errorf("nothing of %s and %q in\n%s", key, want, stdout)
		}
	}
	if code != exitError || !strings.Contains(stderr, "7 of 8 could not be reached, or are not fit") ||
		strings.Contains(stdout+stderr, "heim") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if _, stdout, _ := newShell(t, well).run("", "config", "check", "--connect", "--roles", "webhooks"); strings.Contains(
		stdout, "leo") || !strings.Contains(stdout, "\nmail.url: ") {
		t.Errorf("a process with webhooks alone speaks to the mail server and to no carrier:\n%s", stdout)
	}
}

// TestUnreachableHosts: each host of database.url has one line with the host and the reason, without the password.
func TestUnreachableHosts(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	closed := rig.FreeAddress()
	for _, hosts := range [][]string{{closed}, {"unknown.invalid:5432", silent.Addr().String(), closed}} {
		s := newShell(t, fmt.Sprintf("database: {url: 'postgres://u:canary@%s/d?sslmode=disable&connect_timeout=1'}\nredis: "+
			"{url: 'redis://%s/0'}\ncarriers: [{name: leo, default: true, links: [{name: leo-1, address: '127.0.0.1:1', "+
			"system_id: s, password: p}]}]\n",
			strings.Join(hosts, ","), closed))
		for _, args := range [][]string{{"admin", "links"}, {"migrate"}, {"config", "check", "--connect", "--roles", "api"}} {
			code, stdout, stderr := s.run("", args...)
			printed, key := stderr, ""
			if args[0] == "config" {
				printed, key = stdout, "database: NOT reached: "
			}
			if code != exitError || strings.Contains(printed, "\t") || strings.Contains(printed, "canary") {
				t.Errorf("%v: exit code %d\n%s", args, code, printed)
			}
			for _, host := range hosts {
				found := 0
				for line := range strings.Lines(printed) {
					if strings.Contains(line, strings.TrimSuffix(host, ":5432")) && !strings.HasPrefix(line, "redis:") &&
						strings.HasPrefix(line, key) {
						found++
					}
				}
				if found != 1 {
					t.Errorf("%v: %s is in %d lines, want 1\n%s", args, host, found, printed)
				}
			}
		}
	}
}

// TestNoConfiguration: without a configuration file, every command names the path it tried; the help names the default.
func TestNoConfiguration(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "intumwa.yaml")
	for _, args := range [][]string{{"serve"}, {"config", "check"}, {"migrate"}, {"admin", "links"}} {
		s := &shell{t: t, config: missing}
		s.refused("there is no configuration file "+missing+"; --config or INTUMWA_CONFIG names another", "", args...)
	}
	t.Setenv("INTUMWA_CONFIG", "")
	for args, want := range map[string]string{
		"serve":  "no configuration file is read, because --config or INTUMWA_CONFIG is empty",
		"--help": "/etc/intumwa/intumwa.yaml",
	} {
		var out, errs bytes.Buffer
		run(t.Context(), []string{args}, strings.NewReader(""), &out, &errs)
		if printed := out.String() + errs.String(); !strings.Contains(printed, want) {
			t.Errorf("%s does not print %q:\n%s", args, want, printed)
		}
	}
}
