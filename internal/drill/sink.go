package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// sink is a customer's webhook endpoint.
type sink struct {
	url    string
	server *http.Server
	dead   atomic.Bool
}

func newSink(ctx context.Context) (*sink, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for webhooks: %w", err)
	}
	k := &sink{url: "http://" + listener.Addr().String() + "/hook"}
	k.server = &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, 64<<10))
		if k.dead.Load() {
			panic(http.ErrAbortHandler) // the connection breaks without an answer
		}
	})}
	go func() { _ = k.server.Serve(listener) }()
	return k, nil
}

func (k *sink) close() { _ = k.server.Close() }
