package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// sentinelPatience bounds what one Sentinel may take to say who the master is.
	sentinelPatience = 500 * time.Millisecond
	// sentinelInterval is how often one is asked although all connections are well: a
	// master that was deposed may answer for long to those who still reach it.
	sentinelInterval = time.Second
)

// masterClient is a client of the master that Sentinel names, whoever that is at the
// moment. go-redis has a client of this kind, which reads and writes the list of
// Sentinels at the same time while it looks for the first that answers.
// That it is one need not be asked: what the queue relies on writes, and a replica refuses
// it, upon which go-redis closes the connection.
//
// https://redis.io/docs/latest/develop/reference/sentinel-clients/
type masterClient struct {
	*redis.Client
	sentinels *sentinels
}

// newMasterClient dials nothing yet; it asks from time to time until it is closed.
func newMasterClient(options *redis.UniversalOptions) *masterClient {
	s := newSentinels(options)
	simple := options.Simple()
	simple.Addr = options.MasterName
	simple.Dialer = s.dial
	return &masterClient{Client: redis.NewClient(simple), sentinels: s}
}

// Close ends the asking and all connections.
func (c *masterClient) Close() error {
	return errors.Join(c.Client.Close(), c.sentinels.close())
}

// sentinels dials the master that the Sentinels name, and closes the connections to
// the one before when they name another.
type sentinels struct {
	name   string
	secure *tls.Config // nil: no TLS
	stop   context.CancelFunc
	ended  chan struct{}

	mu       sync.Mutex
	clients  []*redis.SentinelClient // the one that is asked first is the first
	asked    int                     // questions so far
	followed int                     // the youngest of them whose answer is the master
	master   string                  // host:port, "" before the first answer
	open     map[*masterConn]bool
}

func newSentinels(options *redis.UniversalOptions) *sentinels {
	ctx, stop := context.WithCancel(context.Background())
	s := &sentinels{name: options.MasterName, secure: options.TLSConfig, stop: stop, ended: make(chan struct{}), open: map[*masterConn]bool{}}
	for _, address := range options.Addrs {
		s.clients = append(s.clients, redis.NewSentinelClient(&redis.Options{Addr: address, Protocol: options.Protocol,
			Username: options.SentinelUsername, Password: options.SentinelPassword, TLSConfig: options.TLSConfig,
			DialTimeout: sentinelPatience, DialerRetries: 1, ReadTimeout: sentinelPatience, WriteTimeout: sentinelPatience,
			ContextTimeoutEnabled: true, MaxRetries: -1}))
	}
	go s.watch(ctx)
	return s
}

func (s *sentinels) close() error {
	s.stop()
	<-s.ended
	var errs []error
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, client := range s.clients {
		errs = append(errs, client.Close())
	}
	return errors.Join(errs...)
}

// watch asks until ctx ends. That nobody answers is no reason to let a master go.
func (s *sentinels) watch(ctx context.Context) {
	defer close(s.ended)
	tick := time.NewTicker(sentinelInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		_, _, _ = s.ask(ctx)
	}
}

// ask returns the master's address as the first Sentinel that answers has it, and which
// that is. Who does not answer is asked last from then on.
func (s *sentinels) ask(ctx context.Context) (string, *redis.SentinelClient, error) {
	s.mu.Lock()
	clients := slices.Clone(s.clients)
	s.asked++
	question := s.asked
	s.mu.Unlock()
	var errs []error
	for _, client := range clients {
		answer, err := s.askOne(ctx, client)
		if err == nil {
			return s.follow(answer, question), client, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
		s.last(client)
	}
	return "", nil, fmt.Errorf("no Sentinel says who %s is: %w", s.name, errors.Join(errs...))
}

func (s *sentinels) askOne(ctx context.Context, client *redis.SentinelClient) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, sentinelPatience)
	defer cancel()
	answer, err := client.GetMasterAddrByName(ctx, s.name).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return "", errors.New("it does not know this name (redis.master_name)")
	case err != nil:
		return "", err
	case len(answer) != 2: // host and port
		return "", fmt.Errorf("it answers with %d strings, want a host and a port", len(answer))
	}
	return net.JoinHostPort(answer[0], answer[1]), nil
}

// last makes it the one that is asked last.
func (s *sentinels) last(client *redis.SentinelClient) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.clients, client); i >= 0 {
		s.clients = append(slices.Delete(s.clients, i, i+1), client)
	}
}

// follow makes the address the master's, closes the connections to another, and returns
// it; where a question that was asked later was answered before, it is that one's.
func (s *sentinels) follow(address string, question int) string {
	s.mu.Lock()
	if question < s.followed {
		defer s.mu.Unlock()
		return s.master
	}
	before := s.master
	s.master, s.followed = address, question
	var left []*masterConn
	for conn := range s.open {
		if conn.address != address {
			left = append(left, conn)
		}
	}
	s.mu.Unlock()
	for _, conn := range left {
		_ = conn.Close()
	}
	if log := redisLog.to.Load(); log != nil && before != "" && before != address {
		log.Warn("Redis has another master", "name", s.name, "was", before, "is", address)
	}
	return address
}

// dial connects to the master. Where that fails, another Sentinel is asked next: this
// one may be cut off together with a master that was deposed.
func (s *sentinels) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	address, said, err := s.ask(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := s.connect(ctx, address)
	if err != nil {
		s.last(said)
		return nil, err
	}
	return conn, nil
}

func (s *sentinels) connect(ctx context.Context, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: redisPatience}
	raw, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	conn := &masterConn{TCPConn: raw.(*net.TCPConn), address: address, of: s} //nolint:forcetypeassert // what a net.Dialer gives for tcp
	s.mu.Lock()
	s.open[conn] = true
	deposed := s.master != address // since it was asked for
	s.mu.Unlock()
	if deposed {
		_ = conn.Close()
		return nil, fmt.Errorf("%s is no longer the master", address)
	}
	if s.secure == nil {
		return conn, nil
	}
	secure := s.secure
	if secure.ServerName == "" {
		host, _, _ := net.SplitHostPort(address)
		secure = secure.Clone()
		secure.ServerName = host
	}
	over := tls.Client(conn, secure)
	if err := over.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return over, nil
}

// masterConn is a connection to a master, known until it is closed.
type masterConn struct {
	*net.TCPConn
	address string
	of      *sentinels
}

// Close closes it, also from beside the one who uses it.
func (c *masterConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.TCPConn.Close()
}
