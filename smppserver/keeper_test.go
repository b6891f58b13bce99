package smppserver_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"intumwa/accounts/keys"
	"intumwa/smpp"
)

// other makes a second key of the company and returns what makes a client bind with it.
func (w *bank) other() (keys.Token, func(*smpp.Options)) {
	w.Helper()
	key, password, err := w.keys.CreateSMPPKey(context.Background(), 1, "other",
		[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, keys.SMPPLimits{})
	if err != nil {
		w.Fatal(err)
	}
	return key, func(o *smpp.Options) { o.SystemID, o.Password = key.SystemID, password }
}

// TestBindDuringRenewal: a key that binds while the process renews its other binds stays bound.
func TestBindDuringRenewal(t *testing.T) {
	w := newBank(t, 10, keys.SMPPLimits{})
	p := w.start()
	w.bound(p, nil)
	key, as := w.other()
	tx, err := w.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), `SELECT FROM smpp_binds FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	w.until("a renewal that waits", func() bool {
		return w.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
			AND query LIKE '%UPDATE smpp_binds%'`) > 0
	})
	w.bound(p, as)
	id := w.count(`SELECT id FROM smpp_binds WHERE account = $1`, key.ID)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	w.until("its own renewal", func() bool {
		return w.count(`SELECT count(*) FROM smpp_binds WHERE account = $1 AND seen_at > $2`, key.ID,
			now.Add(time.Second)) > 0
	})
	if is := w.count(`SELECT max(id) FROM smpp_binds WHERE account = $1`, key.ID); is != id {
		t.Errorf("its bind is %d, was %d: it was ended", is, id)
	}
}
