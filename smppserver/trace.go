package smppserver

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"intumwa/smpp"
)

// ErrNotBound means that this process serves no bind of a system_id.
var ErrNotBound = errors.New("no bind of it at this process")

// Trace shows the PDUs of a system_id's binds at this process, until ctx or all of them end, or show fails. Numbers are
// masked, texts are lengths.
func (s *Server) Trace(ctx context.Context, systemID string, show func(smpp.TracedPDU) error) error {
	var peers []*smpp.Peer
	s.mu.Lock()
	for _, b := range s.bound {
		if b.systemID == systemID {
			peers = append(peers, b.peer)
		}
	}
	s.mu.Unlock()
	if peers == nil {
		return fmt.Errorf("%s: %w", systemID, ErrNotBound)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var one sync.Mutex
	var tracing sync.WaitGroup
	var failed error
	for _, p := range peers {
		tracing.Go(func() {
			err := p.Trace(ctx, func(pdu smpp.TracedPDU) error {
				one.Lock()
				defer one.Unlock()
				return show(pdu)
			})
			if err != nil {
				one.Lock()
				failed = err
				one.Unlock()
				cancel()
			}
		})
	}
	tracing.Wait()
	return failed
}
