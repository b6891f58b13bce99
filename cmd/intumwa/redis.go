package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"intumwa/configs"
	"intumwa/internal/queue"
)

const (
	// redisPatience bounds a dial and a reply of Redis. A shorter deadline comes with the call's
	// context.
	redisPatience = 2 * time.Second
	// redisBuffer is the size in bytes of a connection's two buffers: a group's pipeline, and its replies.
	redisBuffer = 4 << 10
	// sentinelPatience bounds one Sentinel's reply.
	sentinelPatience = 500 * time.Millisecond
	// leastWaiting is the least number of connections that wait on the queue, two per
	// link.
	leastWaiting = 256
)

// openRedis makes a client for short calls and one whose connections wait on the queue. It dials nothing: a process
// starts without Redis.
func openRedis(c *configs.Redis, links int) (short, waiting redis.UniversalClient, err error) {
	options, err := redisOptions(c)
	if err != nil {
		return nil, nil, err
	}
	other := *options
	other.PoolSize = max(leastWaiting, 4*links) // for links that a reload adds
	return redisClient(c, options), redisClient(c, &other), nil
}

// redisClient connects to a single server, Sentinel's master or a Cluster.
func redisClient(c *configs.Redis, options *redis.Options) redis.UniversalClient {
	if len(c.Addresses) == 0 || c.MasterName != "" {
		return following(options)
	}
	return redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addresses, Username: options.Username,
		Password:  options.Password,
		TLSConfig: options.TLSConfig, ContextTimeoutEnabled: options.ContextTimeoutEnabled, Protocol: options.Protocol,
		DialTimeout: options.DialTimeout, DialerRetries: options.DialerRetries, ReadTimeout: options.ReadTimeout,
		WriteTimeout: options.WriteTimeout,
		PoolSize:     options.PoolSize, ReadBufferSize: options.ReadBufferSize, WriteBufferSize: options.WriteBufferSize})
}

// redisOptions are the connection options. With addresses, the URL gives only user and password.
func redisOptions(c *configs.Redis) (*redis.Options, error) {
	options, err := redis.ParseURL(cmp.Or(string(c.URL), "redis://"))
	if err != nil {
		return nil, errors.New("redis.url cannot be understood (it is not shown: it may hold a password)")
	}
	if len(c.Addresses) > 0 {
		options.Addr = c.MasterName
		if options.TLSConfig != nil {
			options.TLSConfig.ServerName = "" // each address's own
		}
	}
	secure, err := c.TLSConfig()
	if err != nil {
		return nil, fmt.Errorf("redis.tls: %w", err)
	}
	if secure != nil {
		options.TLSConfig = secure
	}
	options.ContextTimeoutEnabled = true
	options.ReadBufferSize, options.WriteBufferSize = redisBuffer, redisBuffer
	options.Protocol = cmp.Or(options.Protocol, 2) // version 3 makes go-redis peek for push messages before every reply
	options.DialTimeout = cmp.Or(options.DialTimeout, redisPatience)
	options.DialerRetries = 1
	options.ReadTimeout = cmp.Or(options.ReadTimeout, redisPatience)
	options.WriteTimeout = cmp.Or(options.WriteTimeout, redisPatience)
	if c.MasterName != "" {
		options.Dialer = (&sentinels{config: c, secure: secure}).dial
	}
	return options, nil
}

// following is a client of one address. After a server has answered that it cannot be used now, it closes the
// connections: the address may lead to another server since. go-redis does so for READONLY alone, and not in a
// pipeline. (A client of a Cluster looks for the other nodes itself.)
func following(options *redis.Options) *redis.Client {
	l := &redisConns{open: map[*redisConn]struct{}{}, dial: options.Dialer}
	own := *options
	if l.dial == nil {
		l.dial = redis.NewDialer(options)
	}
	own.Dialer = l.connect
	client := redis.NewClient(&own)
	client.AddHook(l)
	return client
}

// redisConns are a client's connections.
type redisConns struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)

	mu     sync.Mutex
	open   map[*redisConn]struct{}
	closed time.Time // when all were closed
}

// redisConn is one connection.
type redisConn struct {
	net.Conn
	of *redisConns
}

// Close closes the connection and forgets it.
func (l *redisConn) Close() error {
	l.of.mu.Lock()
	delete(l.of.open, l)
	l.of.mu.Unlock()
	return l.Conn.Close()
}

func (r *redisConns) connect(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := r.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l := &redisConn{conn, r}
	r.mu.Lock()
	r.open[l] = struct{}{}
	r.mu.Unlock()
	if raw, plain := conn.(syscall.Conn); plain { // go-redis looks at idle connections, but not at those with TLS
		return struct {
			*redisConn
			syscall.Conn
		}{l, raw}, nil
	}
	return l, nil
}

// heed closes all connections, at most once a second, after an error of a server that cannot be used now.
func (r *redisConns) heed(err error) {
	if err == nil || errors.Is(err, redis.Nil) {
		return
	}
	if fault := queue.FaultOf(err); fault != queue.Unwritable && fault != queue.Loading {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.closed) < time.Second {
		return
	}
	r.closed = time.Now()
	for l := range r.open {
		delete(r.open, l)
		_ = l.Conn.Close() // its user gets an error
	}
}

// DialHook implements redis.Hook.
func (r *redisConns) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (r *redisConns) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		r.heed(err)
		return err
	}
}

// ProcessPipelineHook implements redis.Hook.
func (r *redisConns) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if err != nil {
			for _, cmd := range cmds {
				r.heed(cmd.Err())
			}
		}
		return err
	}
}

// sentinels dials the master that a Sentinel names. The failover client of go-redis keeps a Sentinel that no longer
// answers, and makes no connection until it is back (TestSilentSentinel).
type sentinels struct {
	config *configs.Redis
	secure *tls.Config  // nil: no TLS
	failed atomic.Int64 // failed Sentinels; the next one is tried first
}

// dial connects to the master. A Sentinel may be cut off together with a former master: if either does not answer, dial
// tries the next Sentinel.
func (s *sentinels) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	var errs []error
	for range s.config.Addresses {
		failed := s.failed.Load()
		conn, err := s.through(ctx, s.config.Addresses[failed%int64(len(s.config.Addresses))])
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
		s.failed.CompareAndSwap(failed, failed+1)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("no Sentinel leads to the master %s (redis.master_name): %w", s.config.MasterName,
		errors.Join(errs...))
}

// through connects to the master that one Sentinel names.
func (s *sentinels) through(ctx context.Context, sentinel string) (net.Conn, error) {
	client := redis.NewSentinelClient(&redis.Options{Addr: sentinel, Protocol: 2,
		Password: string(s.config.SentinelPassword), TLSConfig: s.secure, ContextTimeoutEnabled: true, MaxRetries: -1,
		DialerRetries: 1, PoolSize: 1})
	defer func() { _ = client.Close() }()
	asking, cancel := context.WithTimeout(ctx, sentinelPatience)
	defer cancel()
	master, err := client.GetMasterAddrByName(asking, s.config.MasterName).Result()
	switch {
	case errors.Is(err, redis.Nil): // the queue would take it for a missing key
		return nil, fmt.Errorf("Sentinel %s has no master of this name", sentinel)
	case err != nil:
		return nil, fmt.Errorf("asking Sentinel %s: %w", sentinel, err)
	case len(master) != 2: // host and port
		return nil, fmt.Errorf("Sentinel %s answered with %d strings, want a host and a port", sentinel, len(master))
	}
	address := net.JoinHostPort(master[0], master[1])
	if s.secure != nil {
		return (&tls.Dialer{Config: s.secure}).DialContext(ctx, "tcp", address)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", address)
}

// refuseEvicting returns an error if Redis evicts keys: no process may start with it. An absent Redis does not prevent
// the start; its settings are a metric and an alert once it is back.
func refuseEvicting(ctx context.Context, q *queue.Queue) error {
	ctx, cancel := context.WithTimeout(ctx, redisPatience)
	defer cancel()
	return q.Evicts(ctx)
}
