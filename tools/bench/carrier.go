package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"intumwa/tools/rig"
)

// carrier is a simulated carrier in its own process.
type carrier struct {
	process    *rig.Program
	smpp, page string // addresses
}

// openCarrier returns when the carrier accepts binds.
func openCarrier(ctx context.Context, w *world, name string, resp, receipt time.Duration) (*carrier, error) {
	log := filepath.Join(w.dir, name+".log")
	for range freeTries {
		c := &carrier{smpp: rig.FreeAddress(), page: rig.FreeAddress()}
		var err error
		if c.process, err = rig.Start(log, w.binary, "carrier-sim", "--no-fates", "--resp-delay", resp.String(),
			"--receipt-delay", receipt.String(), "--carrier", name+"="+c.smpp, "--page", c.page); err != nil {
			return nil, err
		}
		err = poll(ctx, startWithin, func() bool { return c.process.Died() || c.get("/stats.json", &carried{}) == nil })
		if err == nil && !c.process.Died() {
			return c, nil
		}
		c.process.Kill()
		if err != nil {
			return nil, fmt.Errorf("the carrier does not come up: %w", err)
		}
	}
	return nil, fmt.Errorf("the carrier ends at once; see %s", log)
}

// carried has a carrier's counts.
type carried struct {
	Sessions   int `json:"sessions"`
	Accepted   int `json:"accepted"`
	Duplicates int `json:"duplicates"`
	Confirmed  int `json:"confirmed"` // receipts
}

// submit is a received submit_sm.
type submit struct {
	At      time.Time `json:"at"`
	Session int       `json:"session"`
	Text    string    `json:"text"`
}

// stats returns the counts, or zeros without a response.
func (c *carrier) stats() carried {
	var s carried
	_ = c.get("/stats.json", &s)
	return s
}

// submits returns the last 100,000.
func (c *carrier) submits() (list []submit, err error) {
	return list, c.get("/submits.json", &list)
}

func (c *carrier) get(path string, answer any) error {
	response, err := http.Get("http://" + c.page + path) //nolint:noctx // loopback
	if err != nil {
		return fmt.Errorf("asking the carrier: %w", err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(bufio.NewReader(response.Body)).Decode(answer); err != nil {
		return fmt.Errorf("reading what the carrier received: %w", err)
	}
	return nil
}

// forget clears its record.
func (c *carrier) forget() error {
	response, err := http.Post("http://"+c.page+"/reset", "", nil) //nolint:noctx // loopback
	if err != nil {
		return fmt.Errorf("emptying the carrier's record: %w", err)
	}
	return response.Body.Close()
}

// await waits until n receipts are confirmed, each after the commit that settles its
// message.
func (c *carrier) await(ctx context.Context, n int) (time.Time, error) {
	have, since := 0, time.Now()
	err := poll(ctx, time.Hour, func() bool {
		if now := c.stats().Confirmed; now > have {
			have, since = now, time.Now()
		}
		return have >= n || time.Since(since) > patience
	})
	if err == nil && have < n {
		err = fmt.Errorf("%d of %d receipts were confirmed, then nothing came for %v", have, n, patience)
	}
	return since, err
}

// patience is how long bench waits for the next final message: a killed gateway's claims
// last for a while.
const patience = time.Minute
