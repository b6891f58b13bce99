package smppserver

import (
	"context"
	"errors"
	"time"

	"intumwa/accounts"
	"intumwa/accounts/keys"
	"intumwa/internal/throttle"
	"intumwa/smpp"
	"intumwa/smppserver/binds"
)

// bind is one bind of a key that this process serves.
type bind struct {
	id       int64
	account  int64 // its key's id
	systemID string
	peer     *smpp.Peer
	peerName string
	receives bool
	short    bool // its messages have short names
	ready    bool // it takes deliveries; guarded by Server.mu
	given    int  // deliveries on their way to it; guarded by Server.mu

	key keys.Token // as last read; guarded by Server.mu
}

// login decides about a bind. A wrong password and an unknown system_id get the same status.
func (s *Server) login(ctx context.Context, p *smpp.Peer, l smpp.Login) (smpp.Admission, smpp.Status) {
	refuse := func(status smpp.Status, why string) (smpp.Admission, smpp.Status) {
		s.metrics.bindsRefused.WithLabelValues(why).Inc()
		s.log.Info("a customer's bind is refused", "event", "smpp_bind_refused", "status", status.String(), "reason", why,
			"peer", l.Remote.String())
		return smpp.Admission{}, status
	}
	key := throttleKey(l.Remote)
	if !allowed(ctx, s.deps.Binding, key) {
		return refuse(smpp.StatusThrottled, refusedFlood)
	}
	of, err := s.check(ctx, key, l)
	switch {
	case errors.Is(err, errFlood):
		return refuse(smpp.StatusThrottled, refusedFlood)
	case errors.Is(err, accounts.ErrUnauthenticated):
		return refuse(smpp.StatusInvPassword, refusedLogin)
	case errors.Is(err, keys.ErrNetwork):
		return refuse(smpp.StatusBindFailed, refusedNetwork)
	case err != nil:
		s.log.Warn("a customer's login cannot be checked", "event", "smpp_login_unchecked", "error", err)
		return refuse(smpp.StatusSysErr, refusedUnavailable)
	}
	b := &bind{account: of.ID, systemID: of.SystemID, peer: p, peerName: l.Remote.String(), receives: l.Mode.Receives(),
		short: l.Version < smpp.Version34, key: of}
	b.id, err = s.deps.Binds.Open(ctx, binds.Bind{Account: of.ID, Process: s.process, Peer: b.peerName,
		Mode: l.Mode.String()}, of.Sessions)
	switch {
	case errors.Is(err, binds.ErrTooMany):
		return refuse(smpp.StatusAlreadyBound, refusedSessions)
	case err != nil:
		s.log.Warn("a customer's bind cannot be recorded", "event", "smpp_bind_not_recorded", "key_id", of.ID, "error", err)
		return refuse(smpp.StatusSysErr, refusedUnavailable)
	}
	s.mu.Lock()
	s.bound[b.id] = b
	if s.keys[of.ID] == nil {
		s.keys[of.ID] = new(bucket)
		s.keys[of.ID].set(float64(of.TPS), time.Now())
	}
	s.mu.Unlock()
	s.wakeKeeper() // for the key's rate
	bound := func() {
		s.mu.Lock()
		b.ready = b.receives
		s.mu.Unlock()
		s.courier.kick()
	}
	return smpp.Admission{Window: of.Window, Bound: bound, Request: func(r *smpp.Request) { s.request(b, r) },
		OnLate: s.courier.late}, smpp.StatusOK
}

var errFlood = errors.New("too many wrong logins from its address")

// check returns the key of a login. A login counts as wrong until it is found right: so no more are looked at than may
// be wrong, however many come at once. Those of one address wait for each other, because right ones that come together,
// after a restart, would pass for wrong ones.
func (s *Server) check(ctx context.Context, address int64, l smpp.Login) (of keys.Token, err error) {
	turn := &s.logins[uint64(address)%uint64(len(s.logins))]
	turn.Lock()
	defer turn.Unlock()
	if !allowed(ctx, s.deps.Failures, address) {
		return of, errFlood
	}
	of, err = s.deps.Holders.SMPPLogin(ctx, l.SystemID, l.Password, hostOf(l.Remote))
	if s.deps.Failures != nil && !errors.Is(err, accounts.ErrUnauthenticated) {
		s.deps.Failures.GiveBack(ctx, address)
	}
	return of, err
}

// forget removes the bind of a peer and returns it; nil if it never had one.
func (s *Server) forget(p *smpp.Peer) *bind {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, b := range s.bound {
		if b.peer == p {
			delete(s.bound, id)
			return b
		}
	}
	return nil
}

func allowed(ctx context.Context, t *throttle.Throttle, key int64) bool {
	return t == nil || t.Allow(ctx, key).Allowed
}
