package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"intumwa/configs"
)

const (
	// redisPatience bounds a dial and an answer of Redis. What may not wait so long
	// says so by its context.
	redisPatience = 2 * time.Second
	// leastWaiting connections wait on the queue, two for each link.
	leastWaiting = 256
)

// openRedis makes the client of short calls and the one whose connections wait
// on the queue. Nothing is dialled yet: a Redis that is away stops no start.
func openRedis(c *configs.Redis, links int) (short, waiting redis.UniversalClient, err error) {
	options, err := redisOptions(c)
	if err != nil {
		return nil, nil, err
	}
	other := *options
	other.PoolSize = max(leastWaiting, 4*links) // a reload may bring more
	return redis.NewUniversalClient(options), redis.NewUniversalClient(&other), nil
}

// redisOptions are those of a single server, a Cluster or Sentinel's master, as
// the configuration says: the same in all that is not the address.
func redisOptions(c *configs.Redis) (*redis.UniversalOptions, error) {
	addresses := make([]string, len(c.Addresses))
	for i, address := range c.Addresses {
		addresses[i] = string(address)
	}
	options := &redis.UniversalOptions{Addrs: addresses, MasterName: c.MasterName, Username: c.Username, Password: string(c.Password),
		IsClusterMode: c.MasterName == ""} // also where one node is named, of which the others are learnt
	if len(c.Addresses) == 0 {
		one, err := redis.ParseURL(string(c.Whole()))
		if err != nil {
			return nil, errors.New("redis.url cannot be understood (it is not shown: it may hold a password)")
		}
		options = ofOne(one)
	}
	secure, err := c.TLSConfig()
	if err != nil {
		return nil, fmt.Errorf("redis.tls: %w", err)
	}
	if secure != nil {
		options.TLSConfig = secure
	}
	options.ContextTimeoutEnabled = true
	options.Protocol = cmp.Or(options.Protocol, 2) // with 3 go-redis looks for pushed news before every reply; none are for us
	options.DialTimeout = cmp.Or(options.DialTimeout, redisPatience)
	options.DialerRetries = 1
	options.ReadTimeout = cmp.Or(options.ReadTimeout, redisPatience)
	options.WriteTimeout = cmp.Or(options.WriteTimeout, redisPatience)
	return options, nil
}

// ofOne carries over what a URL can say.
func ofOne(one *redis.Options) *redis.UniversalOptions {
	options := &redis.UniversalOptions{Addrs: []string{one.Addr}, ClientName: one.ClientName, DB: one.DB, Protocol: one.Protocol,
		Username: one.Username, Password: one.Password, TLSConfig: one.TLSConfig,
		MaxRetries: one.MaxRetries, MinRetryBackoff: one.MinRetryBackoff, MaxRetryBackoff: one.MaxRetryBackoff,
		DialTimeout: one.DialTimeout, ReadTimeout: one.ReadTimeout, WriteTimeout: one.WriteTimeout,
		PoolFIFO: one.PoolFIFO, PoolSize: one.PoolSize, PoolTimeout: one.PoolTimeout, MinIdleConns: one.MinIdleConns, MaxIdleConns: one.MaxIdleConns,
		MaxActiveConns: one.MaxActiveConns, ConnMaxIdleTime: one.ConnMaxIdleTime, ConnMaxLifetime: one.ConnMaxLifetime}
	if one.Network == "unix" {
		options.Dialer = func(ctx context.Context, _, _ string) (net.Conn, error) {
			dialer := net.Dialer{Timeout: redisPatience}
			return dialer.DialContext(ctx, "unix", one.Addr)
		}
	}
	return options
}
