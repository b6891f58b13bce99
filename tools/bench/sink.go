package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"
)

// sink receives the webhooks: it returns 200 and counts each message once, except the
// other carrier's. It parses HTTP by hand, because it shares the processors with the
// gateway.
type sink struct {
	listener net.Listener
	serving  sync.WaitGroup

	mu      sync.Mutex
	conns   map[net.Conn]bool
	seen    map[int64]bool
	failed  int // sms.failed among them
	doubled int
	last    time.Time     // time of the latest new one, or of begin
	grown   chan struct{} // closed and replaced at want messages
	want    int
}

func newSink() (*sink, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // loopback
	if err != nil {
		return nil, fmt.Errorf("listening for webhooks: %w", err)
	}
	s := &sink{listener: listener, conns: make(map[net.Conn]bool), seen: make(map[int64]bool), grown: make(chan struct{})}
	s.serving.Go(s.accept)
	return s, nil
}

func (s *sink) address() string { return s.listener.Addr().String() }

func (s *sink) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[conn] = true
		s.mu.Unlock()
		s.serving.Go(func() {
			s.serve(conn)
			_ = conn.Close()
			s.mu.Lock()
			delete(s.conns, conn)
			s.mu.Unlock()
		})
	}
}

func (s *sink) serve(conn net.Conn) {
	in := bufio.NewReader(conn)
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	var body []byte
	for {
		_, length, err := readHead(in)
		if err != nil {
			return
		}
		if cap(body) < length {
			body = make([]byte, length)
		}
		body = body[:length]
		if _, err := io.ReadFull(in, body); err != nil {
			return
		}
		s.count(body)
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}

func (s *sink) count(body []byte) {
	if bytes.Contains(body, []byte(there)) {
		return
	}
	id, failed := messageID(body), bytes.Contains(body, []byte(`sms.failed`))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[id] {
		s.doubled++
		return
	}
	s.seen[id] = true
	s.last = time.Now()
	if failed {
		s.failed++
	}
	if len(s.seen) >= s.want {
		close(s.grown)
		s.grown = make(chan struct{})
	}
}

// messageID reads the number after "message_id".
func messageID(body []byte) int64 {
	_, rest, found := bytes.Cut(body, []byte(`"message_id":`))
	if !found {
		return -1
	}
	rest = bytes.TrimLeft(rest, " ")
	end := 0
	for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
		end++
	}
	id, err := strconv.ParseInt(string(rest[:end]), 10, 64)
	if err != nil {
		return -1
	}
	return id
}

// begin resets the counts.
func (s *sink) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.seen)
	s.failed, s.doubled, s.want, s.last = 0, 0, 0, time.Now()
}

// await waits until n messages are final and returns the time of the last. It gives up
// when no new one comes for a while.
func (s *sink) await(ctx context.Context, n int) (time.Time, error) {
	for {
		s.mu.Lock()
		s.want = n
		have, last, failed, grown := len(s.seen), s.last, s.failed, s.grown
		s.mu.Unlock()
		switch {
		case have >= n && failed > 0:
			return last, fmt.Errorf("%d of %d messages failed", failed, n)
		case have >= n:
			return last, nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		case <-time.After(time.Second):
			if time.Since(last) > patience {
				return time.Time{}, fmt.Errorf("%d of %d messages became final, then nothing came for %v", have, n, patience)
			}
		}
	}
}

// reported returns the number of messages reported since begin, and the number of
// repeated reports.
func (s *sink) reported() (messages, again int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen), s.doubled
}

func (s *sink) close() {
	if err := s.listener.Close(); errors.Is(err, net.ErrClosed) {
		return
	}
	s.mu.Lock()
	for conn := range s.conns {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.serving.Wait()
}
