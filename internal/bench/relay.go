package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// relay stands between the gateway and PostgreSQL and counts what is asked. It
// costs time, so it stands only where none is measured.
type relay struct {
	listener net.Listener
	network  string // of PostgreSQL
	address  string
	serving  sync.WaitGroup

	trips atomic.Int64 // times that somebody waits for PostgreSQL: Sync or a simple query
	asks  atomic.Int64 // statements run: Execute or a simple query
}

func openRelay(database string) (*relay, error) {
	config, err := pgx.ParseConfig(database)
	if err != nil {
		return nil, fmt.Errorf("reading the database's address: %w", err)
	}
	r := &relay{}
	r.network, r.address = pgconn.NetworkAddress(config.Host, config.Port)
	if r.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil { //nolint:noctx // loopback
		return nil, fmt.Errorf("listening for the gateway: %w", err)
	}
	r.serving.Go(r.accept)
	return r, nil
}

// through is the database's URL by way of the relay.
func (r *relay) through(database string) string {
	u, err := url.Parse(database)
	if err != nil {
		return database // pgx has read it
	}
	u.Host = r.listener.Addr().String()
	u.RawQuery = url.Values{"sslmode": {"disable"}}.Encode()
	return u.String()
}

func (r *relay) accept() {
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.serving.Go(func() {
			defer conn.Close()
			var dialer net.Dialer
			server, err := dialer.DialContext(context.Background(), r.network, r.address)
			if err != nil {
				return
			}
			r.serving.Go(func() {
				_, _ = io.Copy(conn, server)
				_ = conn.Close() // the other direction ends too
			})
			_ = r.forward(server, conn)
			_ = server.Close()
		})
	}
}

// forward hands the client's messages on and counts them. The first has no
// type: length, then content; the others begin with one octet of it.
func (r *relay) forward(server io.Writer, client io.Reader) error {
	in, out := bufio.NewReaderSize(client, 64<<10), bufio.NewWriterSize(server, 64<<10)
	for kind := 0; ; kind = 1 {
		head, err := in.Peek(kind + 4)
		if err != nil {
			return err
		}
		if kind == 1 {
			switch head[0] {
			case 'S':
				r.trips.Add(1)
			case 'E':
				r.asks.Add(1)
			case 'Q':
				r.trips.Add(1)
				r.asks.Add(1)
			}
		}
		length := int64(kind) + int64(binary.BigEndian.Uint32(head[kind:]))
		if _, err := io.CopyN(out, in, length); err != nil {
			return err
		}
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

// close returns when the gateway's connections are gone: it has ended before.
func (r *relay) close() {
	_ = r.listener.Close()
	r.serving.Wait()
}
