package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"intumwa/configs"
	"intumwa/queue"
)

const (
	// redisPatience bounds a dial and a reply of Redis. A shorter deadline comes with the call's
	// context.
	redisPatience = 2 * time.Second
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
		return redis.NewClient(options)
	}
	return redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addresses, Username: options.Username, Password: options.Password,
		TLSConfig: options.TLSConfig, ContextTimeoutEnabled: options.ContextTimeoutEnabled, Protocol: options.Protocol,
		DialTimeout: options.DialTimeout, DialerRetries: options.DialerRetries, ReadTimeout: options.ReadTimeout, WriteTimeout: options.WriteTimeout,
		PoolSize: options.PoolSize})
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

// sentinels dials the master that a Sentinel names. The failover client of go-redis keeps a Sentinel that no longer
// answers, and makes no connection until it is back (TestSilentSentinel).
//
// A deposed master becomes a replica and refuses writes; go-redis then closes the connection.
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
	return nil, fmt.Errorf("no Sentinel leads to the master %s (redis.master_name): %w", s.config.MasterName, errors.Join(errs...))
}

// through connects to the master that one Sentinel names.
func (s *sentinels) through(ctx context.Context, sentinel string) (net.Conn, error) {
	client := redis.NewSentinelClient(&redis.Options{Addr: sentinel, Protocol: 2, Password: string(s.config.SentinelPassword), TLSConfig: s.secure, ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1, PoolSize: 1})
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
