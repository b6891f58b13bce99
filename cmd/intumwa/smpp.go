package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"intumwa/api"
	"intumwa/configs"
	"intumwa/internal/notices"
	"intumwa/internal/throttle"
	"intumwa/smppserver"
	"intumwa/sms"
)

// Limits of the listener for customers' programs. A bank has a few binds; an attacker has many connections.
const (
	bindConnections   = 1000 // open connections of a process
	bindsOfAddress    = 100  // of those, from one address
	bindTries         = 120  // binds of one address in a minute
	bindFailures      = 20   // wrong logins of one address in bindFailureWindow
	bindFailureWindow = 15 * time.Minute
)

// serveSMPP starts the role smpp.
func (g *gateway) serveSMPP(ctx context.Context, life *life, rdb redis.UniversalClient, deps smppserver.Deps,
	plan *sms.Plan, listener *notices.Listener, ops *ops) error {
	c := g.config
	deps.Binding = throttle.New(rdb, throttle.Options{Prefix: c.Redis.Prefix + ":binds", Limit: bindTries, Log: g.log})
	deps.Failures = throttle.New(rdb, throttle.Options{Prefix: c.Redis.Prefix + ":bindfailures", Limit: bindFailures,
		Window: bindFailureWindow, Log: g.log})
	server := smppserver.New(deps, smppserver.Options{Plan: plan, Log: g.log, Metrics: g.registry})
	listener.On(notices.Account, server.Changed)
	listener.On(notices.SMPP, server.Changed)
	limits := newBounds("smpp", nil, g.log, g.registry)
	limits.most, limits.perAddress = bindConnections, bindsOfAddress
	door, err := smppserver.Listen(ctx, c.SMPPServer.Listen)
	if err != nil {
		return err
	}
	door = limits.listen(door)
	if c.SMPPServer.TLS != (configs.ServerTLS{}) {
		door = tls.NewListener(door, &tls.Config{MinVersion: tls.VersionTLS12,
			GetCertificate: (&certificate{files: c.SMPPServer.TLS}).get})
	}
	ops.HandleFunc("GET /debug/smpp/{name}/trace", traceLink(server.Trace, g.log))
	life.run("smpp", server.Run)
	life.listeners = append(life.listeners, life.start("smpp listener",
		func(ctx context.Context) error { return server.Serve(ctx, door) }))
	return nil
}

// smppOf is what the documents say of the server.
func smppOf(c *configs.Config) (of api.SMPP) {
	_, port, err := net.SplitHostPort(c.SMPPServer.Listen)
	if err != nil { // it is off
		return of
	}
	return api.SMPP{Port: port, TLS: c.SMPPServer.TLS != (configs.ServerTLS{})}
}

// certificate reads a certificate again when its file has changed: tools renew it every few weeks.
type certificate struct {
	files configs.ServerTLS

	mu      sync.Mutex
	current *tls.Certificate
	changed time.Time // modification time of the current one's file
	looked  time.Time
}

// lookEvery is the pause between looks at the file.
const lookEvery = 10 * time.Second

// get is GetCertificate of tls.Config. While a new file cannot be read, the old certificate serves.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil && time.Since(c.looked) < lookEvery {
		return c.current, nil
	}
	c.looked = time.Now()
	info, err := os.Stat(c.files.Cert)
	if err == nil && (c.current == nil || !info.ModTime().Equal(c.changed)) {
		var pair tls.Certificate
		if pair, err = tls.LoadX509KeyPair(c.files.Cert, c.files.Key); err == nil {
			c.current, c.changed = &pair, info.ModTime()
		}
	}
	if c.current == nil {
		return nil, fmt.Errorf("reading smpp_server.tls: %w", err)
	}
	return c.current, nil
}
