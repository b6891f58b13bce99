package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"intumwa/smpp"
	"intumwa/tools/rig"
)

// bindsOfLoad and windowOfLoad are a customer's program in the scenario smpp.
const (
	bindsOfLoad  = 4
	windowOfLoad = 100
)

// key makes a key of kind SMPP for the company.
func (w *world) key(ctx context.Context) (systemID, password string, err error) {
	out, err := rig.Intumwa{Binary: w.binary, Config: w.config}.Run(ctx, "", "admin", "smpp", "create", "--company", "1",
		"--name", "bench",
		"--networks", "127.0.0.0/8", "--window", fmt.Sprint(windowOfLoad), "--tps", "10000", "--json")
	if err != nil {
		return "", "", err
	}
	var made struct {
		SystemID string `json:"system_id"`
		Password string `json:"password"`
	}
	if err := json.Unmarshal(out, &made); err != nil {
		return "", "", fmt.Errorf("reading a key: %w", err)
	}
	return made.SystemID, made.Password, nil
}

// submits sends n messages as submit_sm over four binds, and waits for their receipts on these binds.
func (w *world) submits(n int) work {
	return func(ctx context.Context) (m measurement, err error) {
		systemID, password, err := w.key(ctx)
		if err != nil {
			return m, err
		}
		if err := w.carrier.forget(); err != nil {
			return m, err
		}
		var receipts, refused atomic.Int64
		all := make(chan struct{})
		ctx, cancel := context.WithCancel(ctx)
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		binds := make([]*smpp.Bind, bindsOfLoad)
		for i := range binds {
			binds[i], err = smpp.New(smpp.Options{Carrier: "gateway", Name: "bench", Window: windowOfLoad,
				Version: smpp.Version34,
				Account: smpp.Account{Addresses: []string{w.binds}, SystemID: systemID, Password: password},
				Deliver: func(d *smpp.Delivery) {
					d.Respond(smpp.StatusOK)
					if receipts.Add(1) == int64(n) {
						close(all)
					}
				}})
			if err != nil {
				return m, err
			}
			running.Go(func() { _ = binds[i].Run(ctx) })
			if err := binds[i].WaitBound(ctx); err != nil {
				return m, fmt.Errorf("binding: %w", err)
			}
		}
		first := w.take(n)
		start := time.Now()
		var answered, senders sync.WaitGroup
		errs := make([]error, len(binds))
		for at, b := range binds {
			senders.Go(func() {
				for i := at; i < n && errs[at] == nil; i += len(binds) {
					number := string(appendNumber(nil, here, first+i)[1:])
					s := smpp.Submit{Source: "BENCH", SourceTON: 5, Dest: number, DestTON: 1, DestNPI: 1, RegisteredDelivery: 1,
						Priority:     1,
						ShortMessage: fmt.Appendf(nil, "Amahoro! Ubutumwa numero %d", first+i)}
					answered.Add(1)
					errs[at] = b.Submit(ctx, &s, func(r smpp.Result) {
						if r.Outcome != smpp.Accepted {
							refused.Add(1)
						}
						answered.Done()
					})
				}
			})
		}
		senders.Wait()
		answered.Wait()
		accepted := time.Since(start)
		if err := errors.Join(errs...); err != nil {
			return m, err
		}
		if lost := refused.Load(); lost > 0 {
			return m, fmt.Errorf("%d of %d submit_sm were not accepted", lost, n)
		}
		select {
		case <-all:
		case <-ctx.Done():
			return m, ctx.Err()
		case <-time.After(time.Minute):
			return m, fmt.Errorf("%d receipts came for %d messages", receipts.Load(), n)
		}
		m.add("all the way", "messages/s", float64(n)/time.Since(start).Seconds())
		m.add("accepted", "messages/s", float64(n)/accepted.Seconds())
		return m, nil
	}
}
