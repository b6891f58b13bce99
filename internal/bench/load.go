package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// load is what one closed-loop run came to.
type load struct {
	rate     float64            // messages a second from the first request to the last webhook
	accepted float64            // messages a second until the last answer
	cpu      map[string]float64 // CPU seconds per 1,000 messages, by process
	doubled  int                // webhooks that came twice
}

// singles sends n messages over all connections, each as soon as the one
// before is answered, from the companies in turn, and waits for all webhooks.
func (r *rig) singles(ctx context.Context, companies []company, n int) (load, error) {
	first := r.numbers
	r.numbers += n
	return r.drive(ctx, r.o.conns, n, n, func(c *client, i int) error {
		c.body = append(c.body[:0], `{"phone_number":"`...)
		c.body = appendNumber(c.body, first+i)
		c.body = append(c.body, `","sender":"BENCH","message":"Amahoro! Ubutumwa numero `...)
		c.body = strconv.AppendInt(c.body, int64(first+i), 10)
		c.body = append(c.body, `"}`...)
		return c.send("/v1/sms", companies[i%len(companies)].token)
	})
}

// bulkSize is how many recipients a bulk request has.
const bulkSize = 500

// bulkLoad sends bulk requests over a few connections.
func (r *rig) bulkLoad(ctx context.Context) (load, error) {
	const conns = 4
	first := r.numbers
	r.numbers += r.o.bulks * bulkSize
	return r.drive(ctx, conns, r.o.bulks, r.o.bulks*bulkSize, func(c *client, i int) error {
		c.body = appendBulk(c.body[:0], first+i*bulkSize)
		return c.send("/v1/sms/bulk", r.companies[0].token)
	})
}

func appendBulk(body []byte, first int) []byte {
	body = append(body, `{"sender":"BENCH","messages":[`...)
	for i := range bulkSize {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, `{"phone_number":"`...)
		body = appendNumber(body, first+i)
		body = append(body, `","message":"Amahoro! Ubutumwa numero `...)
		body = strconv.AppendInt(body, int64(first+i), 10)
		body = append(body, `"}`...)
	}
	return append(body, `]}`...)
}

func appendNumber(body []byte, i int) []byte {
	body = append(body, "+2576"...)
	return strconv.AppendInt(body, int64(1_000_000+i%1_000_000), 10)
}

// drive makes n requests over conns connections and waits until the messages
// they carry are final.
func (r *rig) drive(ctx context.Context, conns, n, messages int, request func(c *client, i int) error) (load, error) {
	clients := make([]*client, conns)
	for i := range clients {
		var err error
		if clients[i], err = dial(r.api); err != nil {
			return load{}, err
		}
		defer clients[i].conn.Close()
	}
	r.sink.begin()
	if err := r.forget(); err != nil {
		return load{}, err
	}
	before, err := r.cpu()
	if err != nil {
		return load{}, err
	}
	start := time.Now()
	var next atomic.Int64
	errs := make([]error, conns)
	var sending sync.WaitGroup
	for i, c := range clients {
		sending.Go(func() {
			for ctx.Err() == nil {
				at := int(next.Add(1)) - 1
				if at >= n {
					return
				}
				if err := request(c, at); err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	sending.Wait()
	answered := time.Since(start)
	if err := errors.Join(errs...); err != nil {
		return load{}, fmt.Errorf("sending: %w", err)
	}
	end, err := r.sink.await(ctx, messages)
	if err != nil {
		return load{}, err
	}
	after, err := r.cpu()
	if err != nil {
		return load{}, err
	}
	l := load{rate: float64(messages) / end.Sub(start).Seconds(), accepted: float64(messages) / answered.Seconds(), cpu: map[string]float64{}}
	for name, used := range after {
		l.cpu[name] = (used - before[name]) / float64(messages) * 1000
	}
	r.sink.mu.Lock()
	l.doubled = r.sink.doubled
	r.sink.mu.Unlock()
	return l, nil
}
