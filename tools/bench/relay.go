package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net/url"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"intumwa/tools/rig"
)

// relay sits between the gateway and PostgreSQL and counts statements. It slows them, so
// only runs that measure no time use it.
type relay struct {
	*rig.Relay
	trips      atomic.Int64 // waits for PostgreSQL: Sync or a simple query
	statements atomic.Int64 // statements: Execute or a simple query
}

func openRelay(database string) (*relay, error) {
	config, err := pgx.ParseConfig(database)
	if err != nil {
		return nil, fmt.Errorf("reading the database's address: %w", err)
	}
	r := &relay{}
	network, address := pgconn.NetworkAddress(config.Host, config.Port)
	r.Relay, err = rig.NewRelay(network, address, r.forward)
	return r, err
}

// through returns the database's URL through the relay.
func (r *relay) through(database string) string {
	u, err := url.Parse(database)
	if err != nil {
		return database // pgx has parsed it
	}
	u.Host = r.Address()
	u.RawQuery = url.Values{"sslmode": {"disable"}}.Encode()
	return u.String()
}

// forward relays the client's messages and counts them. The first has no type, only
// length and content; all others begin with a type byte.
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
				r.statements.Add(1)
			case 'Q':
				r.trips.Add(1)
				r.statements.Add(1)
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
