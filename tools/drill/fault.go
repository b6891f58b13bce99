package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"intumwa/tools/rig"
)

// fault is one fault and its expected alert.
type fault struct {
	name   string
	about  string // the affected carrier; "" is the whole gateway
	alert  string
	labels map[string]string // of that alert
	play   func(context.Context, *stage) error
	lift   func(context.Context, *stage) error

	needsDisk bool // PostgreSQL needs its own filesystem
}

// on plays a fault of a simulated SMSC and reverts it. dropBefore and dropAfter also break its connections.
func on(smsc, faults, back string, dropBefore, dropAfter bool) (play, lift func(context.Context, *stage) error) {
	set := func(body string, drop bool) func(context.Context, *stage) error {
		return func(ctx context.Context, s *stage) error {
			if err := s.carrier(ctx, smsc, "faults", body); err != nil || !drop {
				return err
			}
			return s.carrier(ctx, smsc, "drop", "")
		}
	}
	return set(faults, dropBefore), set(back, dropAfter)
}

func faultOf(name, about, alert string, labels map[string]string, play,
	lift func(context.Context, *stage) error) fault {
	return fault{name: name, about: about, alert: alert, labels: labels, play: play, lift: lift}
}

// faults are ordered so that neighbours affect different carriers: one can start while the previous alert
// resolves.
func faults() []fault {
	carrier := func(name string) map[string]string { return map[string]string{"carrier": name} }
	link := func(name string) map[string]string { return map[string]string{"link": name} }
	var list []fault
	add := func(name, about, alert string, labels map[string]string, smsc, on1, off string, dropBefore, dropAfter bool) {
		play, lift := on(smsc, on1, off, dropBefore, dropAfter)
		list = append(list, faultOf(name, about, alert, labels, play, lift))
	}
	add("link down", lumitel, "CarrierAllLinksDown", carrier(lumitel), "lumitel",
		`{"refuse_connections":true}`, `{"refuse_connections":false}`, true, false)
	add("one of two links down", leo, "LinkDown", link("leo-2"), "leo-b",
		`{"refuse_connections":true}`, `{"refuse_connections":false}`, true, false)
	add("no receipts", onatel, "NoReceipts", carrier(onatel), "onatel",
		`{"no_receipts":true}`, `{"no_receipts":false}`, false, false)
	add("bound but silent", lumitel, "LinkStalled", link("lumitel-1"), "lumitel",
		`{"submit_silent":true,"no_receipts":true}`, `{"submit_silent":false,"no_receipts":false}`, false, true)
	add("bound and accepting nothing", onatel, "LinkBroken", link("onatel-1"), "onatel",
		`{"submit_status":"ESME_RSYSERR"}`, `{"submit_status":0}`, false, false)
	add("throttling", leo, "LinkThrottledHard", link("leo-1"), "leo-a",
		`{"refuse_ratio":0.6,"refuse_status":"ESME_RTHROTTLED"}`, `{"refuse_ratio":0}`, false, false)
	add("unknown receipts", onatel, "UnmatchedReceipts", carrier(onatel), "onatel",
		`{"unknown_per_sec":5}`, `{"unknown_per_sec":0}`, false, false)
	add("queue growing", lumitel, "QueueAge", carrier(lumitel), "lumitel",
		`{"resp_delay":"7s"}`, `{"resp_delay":"0s"}`, false, false)
	list = append(list, faultOf("webhook endpoint dead", "webhooks", "WebhooksFailing", nil,
		func(_ context.Context, s *stage) error { s.sinks[0].dead.Store(true); return nil },
		func(_ context.Context, s *stage) error { s.sinks[0].dead.Store(false); return nil }))
	wrong, right := on("onatel", `{"bind_status":"ESME_RINVPASWD"}`, `{"bind_status":0}`, true, false)
	list = append(list, faultOf("wrong password", onatel, "BindRejected", link("onatel-1"), wrong,
		func(ctx context.Context, s *stage) error { // otherwise the next attempt is in five minutes
			if err := right(ctx, s); err != nil {
				return err
			}
			return s.restartGateway(ctx)
		}))
	for _, store := range []struct {
		name, alert string
		of          func(*stage) *rig.Relay
	}{
		{"Redis away", "RedisDown", func(s *stage) *rig.Relay { return s.redis }},
		{"PostgreSQL away", "DatabaseDown", func(s *stage) *rig.Relay { return s.database }},
	} {
		list = append(list, faultOf(store.name, "", store.alert, nil,
			func(_ context.Context, s *stage) error { store.of(s).Cut(true); return nil },
			func(_ context.Context, s *stage) error { store.of(s).Cut(false); return nil }))
	}
	list = append(list, faultOf("reload refused", "", "ReloadRefused", nil,
		func(_ context.Context, s *stage) error { return s.reload("carriers: [{name: lumitel}]\n") },
		func(_ context.Context, s *stage) error { return s.reload("") }))
	full := faultOf("disk full", "", "DatabaseDown", nil,
		func(_ context.Context, s *stage) error { return s.fillDisk() },
		func(ctx context.Context, s *stage) error { return s.freeDisk(ctx) })
	full.needsDisk = true
	return append(list, full)
}

// limit bounds the time until an alert.
const limit = 2 * time.Minute

// balloon returns the file that fills PostgreSQL's filesystem, which must not be the system's.
func (s *stage) balloon() (string, error) {
	home := filepath.Join(s.o.dir, "postgres")
	var ours, theirs syscall.Stat_t
	if err := errors.Join(syscall.Stat(s.o.dir, &ours), syscall.Stat(home, &theirs)); err != nil {
		return "", fmt.Errorf("looking at PostgreSQL's filesystem: %w", err)
	}
	if ours.Dev == theirs.Dev {
		return "", fmt.Errorf("%s is no filesystem of its own: filling it would fill the machine's", home)
	}
	return filepath.Join(home, "balloon"), nil
}

// fillDisk fills PostgreSQL's disk: writes that extend a table fail, while the server still responds and commits
// others.
func (s *stage) fillDisk() error {
	name, err := s.balloon()
	if err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("filling the disk: %w", err)
	}
	defer func() { _ = file.Close() }()
	for _, size := range []int{1 << 20, 4 << 10} {
		lot := make([]byte, size)
		for err = nil; err == nil; {
			_, err = file.Write(lot)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			return fmt.Errorf("filling the disk: %w", err)
		}
	}
	return nil
}

// freeDisk frees the space. If PostgreSQL ended without room for its WAL, it restarts it, as an operator must.
func (s *stage) freeDisk(ctx context.Context) error {
	name, err := s.balloon()
	if err != nil {
		return err
	}
	if err := os.Remove(name); err != nil {
		return fmt.Errorf("making room on the disk: %w", err)
	}
	start := exec.CommandContext(ctx, "scripts/servers.sh", "start", s.o.dir) //nolint:gosec // ours
	if output, err := start.CombinedOutput(); err != nil {
		return fmt.Errorf("starting PostgreSQL: %w: %s", err, strings.TrimSpace(string(output)))
	}
	return nil
}
