package carriersim

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// Endpoint is one carrier of a fleet and its addresses.
type Endpoint struct {
	Carrier Options
	// SMPP is the address for binds, HTTP the address of the page. Endpoints with the
	// same HTTP address share one page; empty: no page.
	SMPP, HTTP string
	// TLS is the configuration for SMPP over TLS; nil: plain TCP.
	TLS *tls.Config
	// Listening, if not nil, is called with the addresses when both accept connections;
	// web is nil without a page.
	Listening func(c *Carrier, smpp, web net.Addr)
}

// RunFleet serves several carriers until ctx is done or one of them fails. When it
// returns, all its goroutines have ended.
func RunFleet(ctx context.Context, endpoints []Endpoint) error {
	if err := checkFleet(endpoints); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		carriers = make([]*Carrier, len(endpoints))
		lines    = make([]net.Listener, len(endpoints))
		pages    = map[string]net.Listener{}
		listener net.ListenConfig
	)
	closeAll := func() {
		for _, ln := range lines {
			if ln != nil {
				_ = ln.Close()
			}
		}
		for _, ln := range pages {
			_ = ln.Close()
		}
	}
	for i, e := range endpoints {
		carriers[i] = New(e.Carrier)
		ln, err := listener.Listen(ctx, "tcp", e.SMPP)
		if err != nil {
			closeAll()
			return fmt.Errorf("listening for %s: %w", carriers[i].Name(), err)
		}
		if lines[i] = ln; e.TLS != nil {
			lines[i] = tls.NewListener(ln, e.TLS)
		}
		if e.HTTP == "" || pages[e.HTTP] != nil {
			continue
		}
		if pages[e.HTTP], err = listener.Listen(ctx, "tcp", e.HTTP); err != nil {
			delete(pages, e.HTTP)
			closeAll()
			return fmt.Errorf("listening for the page of %s: %w", carriers[i].Name(), err)
		}
	}

	var running sync.WaitGroup
	failed := make(chan error, len(endpoints)+len(pages))
	start := func(serve func() error) {
		running.Go(func() {
			if err := serve(); err != nil {
				failed <- err
				cancel()
			}
		})
	}
	for i := range endpoints {
		start(func() error { return carriers[i].Serve(ctx, lines[i]) })
	}
	for address, ln := range pages {
		var shown []*Carrier
		for i, e := range endpoints {
			if e.HTTP == address {
				shown = append(shown, carriers[i])
			}
		}
		handler := FleetHandler(shown...)
		if len(shown) == 1 {
			handler = shown[0].Handler()
		}
		start(func() error { return servePage(ctx, ln, handler) })
	}
	for i, e := range endpoints {
		if e.Listening == nil {
			continue
		}
		var web net.Addr
		if ln := pages[e.HTTP]; ln != nil {
			web = ln.Addr()
		}
		e.Listening(carriers[i], lines[i].Addr(), web)
	}
	running.Wait()
	close(failed)
	return <-failed
}

func checkFleet(endpoints []Endpoint) error {
	if len(endpoints) == 0 {
		return errors.New("carriersim: no carrier to play")
	}
	seen := map[string]bool{}
	for _, e := range endpoints {
		name := e.Carrier.withDefaults().Name
		if seen[name] {
			return fmt.Errorf("carriersim: two carriers are named %q", name)
		}
		seen[name] = true
		for _, r := range name {
			if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' {
				return fmt.Errorf("carriersim: carrier name %q: only a-z, 0-9, - and _ (it stands in the page's addresses)", name)
			}
		}
	}
	return nil
}

func servePage(ctx context.Context, ln net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if server.Shutdown(grace) != nil {
			_ = server.Close()
		}
	})
	err := server.Serve(ln)
	if !stop() {
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serving the carriers' page: %w", err)
}
