package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// latency is the time from writing an HTTP request to the arrival of its
// submit_sm at the carrier.
type latency struct {
	p50, p99, max time.Duration
}

// pacedSingles sends at a steady rate, each message at its time whether or not
// those before are answered.
func (r *rig) pacedSingles(ctx context.Context) (latency, error) {
	n := int(r.o.paced.Seconds() * float64(r.o.rate))
	first := r.numbers
	r.numbers += n
	r.sink.begin()
	if err := r.forget(); err != nil {
		return latency{}, err
	}
	sent := make([]time.Time, n)
	due := make(chan int, n)
	const conns = 32
	errs := make([]error, conns)
	var sending sync.WaitGroup
	for w := range conns {
		c, err := dial(r.api)
		if err != nil {
			return latency{}, err
		}
		defer c.conn.Close()
		sending.Go(func() {
			for i := range due {
				c.body = append(c.body[:0], `{"phone_number":"`...)
				c.body = appendNumber(c.body, first+i)
				c.body = append(c.body, `","sender":"BENCH","message":"marker `...)
				c.body = strconv.AppendInt(c.body, int64(i), 10)
				c.body = append(c.body, `"}`...)
				sent[i] = time.Now()
				if err := c.send("/v1/sms", r.companies[0].token); err != nil {
					errs[w] = err
					return
				}
			}
		})
	}
	interval := time.Second / time.Duration(r.o.rate)
	start := time.Now()
	for i := range n {
		time.Sleep(time.Until(start.Add(time.Duration(i) * interval)))
		if ctx.Err() != nil {
			break
		}
		due <- i
	}
	close(due)
	sending.Wait()
	if err := errors.Join(append(errs, ctx.Err())...); err != nil {
		return latency{}, fmt.Errorf("sending: %w", err)
	}
	if _, err := r.sink.await(ctx, n); err != nil {
		return latency{}, err
	}
	var submits []struct {
		At   time.Time `json:"at"`
		Text string    `json:"text"`
	}
	if err := r.carrier("/submits.json", &submits); err != nil {
		return latency{}, err
	}
	times := make([]time.Duration, 0, n)
	for _, s := range submits {
		number, found := strings.CutPrefix(s.Text, "marker ")
		i, err := strconv.Atoi(number)
		if !found || err != nil || i >= n {
			return latency{}, fmt.Errorf("the carrier received %q", s.Text)
		}
		times = append(times, s.At.Sub(sent[i]))
	}
	if len(times) != n {
		return latency{}, fmt.Errorf("the carrier received %d messages, not %d", len(times), n)
	}
	slices.Sort(times)
	return latency{quantile(times, 0.5), quantile(times, 0.99), times[n-1]}, nil
}

// bulkRequests sends bulk requests one at a time to an idle gateway and
// answers how long each took to be answered.
func (r *rig) bulkRequests(ctx context.Context) ([]time.Duration, error) {
	const n = 12
	c, err := dial(r.api)
	if err != nil {
		return nil, err
	}
	defer c.conn.Close()
	times := make([]time.Duration, n)
	for i := range times {
		r.sink.begin()
		c.body = appendBulk(c.body[:0], r.numbers)
		r.numbers += bulkSize
		start := time.Now()
		if err := c.send("/v1/sms/bulk", r.companies[0].token); err != nil {
			return nil, err
		}
		times[i] = time.Since(start)
		if _, err := r.sink.await(ctx, bulkSize); err != nil {
			return nil, err
		}
	}
	return times, nil
}

// quantile of sorted times, the nearest rank.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
