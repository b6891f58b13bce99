package testenv

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// lateVariable holds a percentage: so many of the answers of the shared servers come
// late, as from a machine that is busy now and then. A test that waits for one thing that
// the product does, and then looks once for the next, is found out by it.
const lateVariable = "INTUMWA_TEST_LATE"

// A late answer comes after leastLate to mostLate: long enough for a test to look between
// two statements of the product, and short beside any deadline of it.
const (
	leastLate = 20 * time.Millisecond
	mostLate  = 300 * time.Millisecond
)

// late returns the URL of a relay to the server at address, of whose answers as many as
// lateVariable says come late, or address itself when it says nothing. The relay lasts as
// long as this process.
func late(address string) (string, error) {
	share := os.Getenv(lateVariable)
	if share == "" {
		return address, nil
	}
	percent, err := strconv.Atoi(share)
	if err != nil || percent < 0 || percent > 100 {
		return "", fmt.Errorf("%s is %q: it must be a percentage, from 0 to 100", lateVariable, share)
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", errors.New("the server's URL cannot be read") // which may hold a password
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listening for late answers: %w", err)
	}
	dial := func() (net.Conn, error) { return net.Dial("tcp", u.Host) }
	here := listener.Addr().(*net.TCPAddr) //nolint:forcetypeassert // what a TCP listener has
	relayed := *u
	if q := u.Query(); u.Scheme != "redis" && filepath.IsAbs(q.Get("host")) {
		socket := filepath.Join(q.Get("host"), ".s.PGSQL.5432")
		dial = func() (net.Conn, error) { return net.Dial("unix", socket) }
		q.Set("host", here.IP.String())
		q.Set("port", strconv.Itoa(here.Port))
		q.Set("sslmode", "disable")
		relayed.RawQuery = q.Encode()
	} else {
		relayed.Host = here.String()
	}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go relay(client, dial, percent)
		}
	}()
	return relayed.String(), nil
}

// relay passes on what a client and its server say until both have ended, and the
// server's words late in percent of the cases.
func relay(client net.Conn, dial func() (net.Conn, error), percent int) {
	defer client.Close()
	server, err := dial()
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, client)
		if half, ok := server.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}()
	for said := make([]byte, 64<<10); ; {
		n, err := server.Read(said)
		if n > 0 && rand.IntN(100) < percent {
			time.Sleep(leastLate + rand.N(mostLate-leastLate))
		}
		if _, failed := client.Write(said[:n]); failed != nil || err != nil {
			return
		}
	}
}
