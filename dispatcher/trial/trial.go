// Package trial binds to a carrier beside the gateway, sends one message and waits for its receipt, to learn how the
// carrier wants its SMPP. It uses no database.
package trial

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"intumwa/dispatcher/profile"
	"intumwa/smpp"
	"intumwa/sms"
)

// Options of a trial.
type Options struct {
	Link    smpp.Options // Deliver, Log and Metrics are the trial's
	Profile profile.Profile
	To      sms.Number // "": bind only
	Sender  string
	Text    string
	Wait    time.Duration // for the answer and the receipt
}

// Attempt is one submit_sm of a trial and its answer.
type Attempt struct {
	SourceTONNPI [2]uint8 `json:"source_ton_npi"`
	DestTONNPI   [2]uint8 `json:"dest_ton_npi"`
	Changed      []string `json:"changed,omitempty"` // lines of the configuration that differ from it
	Status       string   `json:"status"`            // of submit_sm_resp; or why there is none
}

// Result is what a trial learnt.
type Result struct {
	Bound       bool
	BoundAfter  float64 // seconds
	SMSCVersion string  // sc_interface_version in hexadecimal; "": the bind's answer had none
	Attempts    []Attempt
	MessageID   string // of submit_sm_resp
	Receipt     *Receipt
	Others      int      // receipts and MOs of others, left to the carrier to deliver again
	Learnt      []string // lines of the configuration that differ from it, and hold for this carrier
}

// maxAttempts bounds the refused submit_sm of a trial.
const maxAttempts = 12

// bindWithin bounds the bind: each address has the time to connect and to answer.
const bindWithin = smpp.DefaultDialTimeout + smpp.DefaultBindTimeout

// trial is a running trial.
type trial struct {
	Options
	bind   *smpp.Bind
	result Result

	mu       sync.Mutex
	receipts []*Receipt // of our number
	others   int
	arrived  chan struct{} // a delivery came; capacity 1
}

// Run binds, sends at most a dozen messages until one is accepted, waits for its receipt and unbinds. The result is
// what was learnt until an error.
func Run(ctx context.Context, o Options) (Result, error) {
	t := &trial{Options: o, arrived: make(chan struct{}, 1)}
	o.Link.Deliver, o.Link.Class = t.deliver, o.Profile.ClassOf
	o.Link.Reading = func() smpp.Reading { return t.Profile.Reading }
	o.Link.DrainTimeout, o.Link.UnbindTimeout = time.Second, time.Second
	bind, err := smpp.New(o.Link)
	if err != nil {
		return t.result, err
	}
	t.bind = bind
	running, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = bind.Run(running) // it ends with running
	}()
	defer func() { stop(); <-ended }()
	if err := t.awaitBind(ctx); err != nil || o.To == "" {
		return t.result, err
	}
	err = t.send(ctx)
	t.mu.Lock()
	t.result.Others = t.others
	t.mu.Unlock()
	return t.result, err
}

// awaitBind waits until the link is bound. Of one address the first failure counts; further ones take turns.
func (t *trial) awaitBind(ctx context.Context) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, time.Duration(len(t.Link.Addresses))*bindWithin)
	defer cancel()
	for {
		snap := t.bind.Snapshot()
		switch {
		case snap.State == smpp.Bound:
			t.result.Bound, t.result.BoundAfter = true, time.Since(began).Seconds()
			if snap.PeerVersion != 0 {
				t.result.SMSCVersion = fmt.Sprintf("%#02x", snap.PeerVersion)
			}
			return nil
		case snap.State == smpp.Down && snap.LastError != "" && len(t.Link.Addresses) == 1:
			return fmt.Errorf("not bound: %s", snap.LastError)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not bound after %s: %s", time.Since(began).Round(time.Second), snap.LastError)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// send submits the message, changed as the refusals say, and waits for the receipt of the accepted one.
func (t *trial) send(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.Wait)
	defer cancel()
	tries := variations(t.Profile, t.Sender)
	p, lines := t.Profile, map[string]string{} // what differs from the configuration, by key
	for {
		answer, err := t.submit(ctx, &p, slices.Sorted(maps.Values(lines)))
		if err != nil {
			return err
		}
		if answer.Outcome == smpp.Accepted {
			t.result.MessageID, t.result.Learnt = answer.MessageID, slices.Sorted(maps.Values(lines))
			break
		}
		next, ok := tries.after(answer.Status)
		if !ok || len(t.result.Attempts) >= maxAttempts {
			return fmt.Errorf("the carrier refuses the message: %s", answer.Status)
		}
		next.apply(&p)
		lines[next.key] = next.line
	}
	if t.Link.Mode == smpp.Transmitter {
		return nil // its receipts come on another bind
	}
	return t.awaitReceipt(ctx, &p)
}

// submit sends the message once and waits for its answer.
func (t *trial) submit(ctx context.Context, p *profile.Profile, changed []string) (smpp.Result, error) {
	now := time.Now()
	m := profile.Message{ID: rand.Int64(), Sender: t.Sender, Number: t.To, Body: t.Text, ConcatRef: byte(rand.Uint32()),
		ExpiresAt: now.Add(max(t.Wait, time.Hour)), Single: true}
	submits := p.Segments(&m, now)
	if len(submits) != 1 {
		return smpp.Result{}, fmt.Errorf("the text takes %d segments here; a trial sends one", len(submits))
	}
	one := &submits[0]
	attempt := Attempt{SourceTONNPI: [2]uint8{one.SourceTON, one.SourceNPI},
		DestTONNPI: [2]uint8{one.DestTON, one.DestNPI}, Changed: changed}
	answered := make(chan smpp.Result, 1)
	if err := t.bind.Submit(ctx, one, func(r smpp.Result) { answered <- r }); err != nil {
		return smpp.Result{}, fmt.Errorf("submitting: %w", err)
	}
	select {
	case r := <-answered:
		attempt.Status = r.Status.String()
		if r.Err != nil && r.Outcome != smpp.Rejected {
			attempt.Status = r.Err.Error()
		}
		t.result.Attempts = append(t.result.Attempts, attempt)
		if r.Outcome == smpp.Accepted || r.Outcome == smpp.Rejected {
			return r, nil
		}
		return r, fmt.Errorf("no answer to submit_sm: %w", r.Err)
	case <-ctx.Done():
		attempt.Status = "no answer"
		t.result.Attempts = append(t.result.Attempts, attempt)
		return smpp.Result{}, fmt.Errorf("no answer to submit_sm for %s", t.Wait)
	}
}
