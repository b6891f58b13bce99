package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// bulkSize is the maximum number of recipients in a bulk request.
const bulkSize = 500

// Prefixes of recipients by carrier.
const (
	here  = "+25761"
	there = "+25779"
)

func appendNumber(body []byte, prefix string, i int) []byte {
	body = append(body, prefix...)
	return append(body, fmt.Sprintf("%06d", i%1_000_000)...)
}

func appendSingle(body []byte, prefix string, i int) []byte {
	body = appendNumber(append(body, `{"phone_number":"`...), prefix, i)
	body = append(body, `","sender":"BENCH","message":"Amahoro! Ubutumwa numero `...)
	return append(strconv.AppendInt(body, int64(i), 10), `"}`...)
}

func appendBulk(body []byte, prefix string, first int) []byte {
	body = append(body, `{"sender":"BENCH","messages":[`...)
	for i := range bulkSize {
		if i > 0 {
			body = append(body, ',')
		}
		body = appendNumber(append(body, `{"phone_number":"`...), prefix, first+i)
		body = append(body, `","message":"Amahoro! Ubutumwa numero `...)
		body = append(strconv.AppendInt(body, int64(first+i), 10), `"}`...)
	}
	return append(body, `]}`...)
}

// work is a load of messages; it returns when all are final.
type work func(ctx context.Context) (measurement, error)

// singles sends n messages over 64 connections; each waits for the response to the one
// before.
func (w *world) singles(n int) work {
	return func(ctx context.Context) (measurement, error) {
		first := w.take(n)
		return w.drive(ctx, 64, n, n, func(c *client, i int) error {
			c.body = appendSingle(c.body[:0], here, first+i)
			return c.send("/v1/sms", w.token)
		})
	}
}

// bulk sends n messages in requests of 500 over four connections.
func (w *world) bulk(n int) work {
	return func(ctx context.Context) (measurement, error) {
		return w.drive(ctx, 4, n/bulkSize, n, w.bulkRequest(here, w.take(n)))
	}
}

// bulkRequest sends 500 recipients of a range that begins with first.
func (w *world) bulkRequest(prefix string, first int) func(c *client, i int) error {
	return func(c *client, i int) error {
		c.body = appendBulk(c.body[:0], prefix, first+i*bulkSize)
		return c.send("/v1/sms/bulk", w.token)
	}
}

// drive makes n requests over conns connections and waits until their messages are final.
func (w *world) drive(ctx context.Context, conns, n, messages int, request func(c *client, i int) error) (
	measurement, error) {
	var m measurement
	final, err := w.expect(messages)
	if err != nil {
		return m, err
	}
	start := time.Now()
	if err := w.requests(ctx, conns, n, request); err != nil {
		return m, err
	}
	answered := time.Since(start)
	end, err := final(ctx)
	if err != nil {
		return m, err
	}
	m.add("all the way", "messages/s", float64(messages)/end.Sub(start).Seconds())
	m.add("accepted", "messages/s", float64(messages)/answered.Seconds())
	return m, nil
}

// requests makes n requests in closed loops and returns when all are answered.
func (w *world) requests(ctx context.Context, conns, n int, request func(c *client, i int) error) error {
	var next atomic.Int64
	return w.clients(conns, func(c *client) error {
		for {
			at := int(next.Add(1)) - 1
			if at >= n || ctx.Err() != nil {
				return ctx.Err()
			}
			if err := request(c, at); err != nil {
				return err
			}
		}
	})
}

// clients runs do on each of n connections and returns when all have ended.
func (w *world) clients(n int, do func(c *client) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			c, err := dial(w.apiFor(i))
			if err == nil {
				err = do(c)
				c.conn.Close()
			}
			errs[i] = err
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// paced sends n messages at a steady rate, regardless of responses, and measures the time
// from each message's slot to its submit_sm.
func (w *world) paced(rate, n int) work {
	return func(ctx context.Context) (measurement, error) {
		var m measurement
		first := w.take(n)
		final, err := w.expect(n)
		if err != nil {
			return m, err
		}
		due := make(chan int, n)
		sent := make([]time.Time, n)
		go func() {
			defer close(due)
			start := time.Now()
			for i := range n {
				time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / time.Duration(rate))))
				if ctx.Err() != nil {
					return
				}
				sent[i] = time.Now()
				due <- i
			}
		}()
		if err := w.clients(32, func(c *client) error {
			for i := range due {
				c.body = appendSingle(c.body[:0], here, first+i)
				if err := c.send("/v1/sms", w.token); err != nil {
					return err
				}
			}
			return ctx.Err()
		}); err != nil {
			return m, err
		}
		if _, err := final(ctx); err != nil {
			return m, err
		}
		submits, err := w.carrier.submits()
		if err != nil {
			return m, err
		}
		times := make([]time.Duration, 0, n)
		for _, s := range submits {
			i, err := strconv.Atoi(s.Text[strings.LastIndexByte(s.Text, ' ')+1:])
			if i -= first; err != nil || i < 0 || i >= n {
				return m, fmt.Errorf("the carrier received %q", s.Text)
			}
			times = append(times, s.At.Sub(sent[i]))
		}
		if len(times) != n {
			return m, fmt.Errorf("the carrier received %d messages, not %d", len(times), n)
		}
		slices.Sort(times)
		m.add("request to submit_sm, p50", "ms", milliseconds(quantile(times, 0.5)))
		m.add("request to submit_sm, p99", "ms", milliseconds(quantile(times, 0.99)))
		m.add("request to submit_sm, longest", "ms", milliseconds(times[n-1]))
		return m, nil
	}
}

// pile queues n messages for the other carrier.
func (w *world) pile(ctx context.Context, n int) error {
	if n%bulkSize != 0 {
		return fmt.Errorf("%d is no multiple of %d", n, bulkSize)
	}
	if err := w.requests(ctx, 4, n/bulkSize, w.bulkRequest(there, w.take(n))); err != nil {
		return err
	}
	if err := w.tidy(ctx); err != nil {
		return err
	}
	return w.rest(ctx)
}

// rest waits, at most 20 s, until PostgreSQL uses less than a tenth of a core: the
// gateway's jobs may be busy.
func (w *world) rest(ctx context.Context) error {
	before, err := familyTime(w.postgresPID)
	if err != nil {
		return err
	}
	for range 20 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
		now, err := familyTime(w.postgresPID)
		if err != nil {
			return err
		}
		if now-before < 0.1 {
			break
		}
		before = now
	}
	return nil
}

// quantile returns the nearest rank of sorted times. All times are kept; a library's
// histogram would round them.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// client is one connection to the API. It writes requests and parses responses by hand to
// keep its own cost small.
type client struct {
	conn    net.Conn
	in      *bufio.Reader
	request []byte
	body    []byte
}

const answerWithin = 60 * time.Second

func dial(address string) (*client, error) {
	conn, err := net.Dial("tcp", address) //nolint:noctx // loopback
	if err != nil {
		return nil, fmt.Errorf("connecting to the gateway: %w", err)
	}
	return &client{conn: conn, in: bufio.NewReaderSize(conn, 4096)}, nil
}

// send posts the client's body and returns after reading the response; any status except
// 200 is an error.
func (c *client) send(path, token string) error {
	r := append(c.request[:0], "POST "...)
	r = append(r, path...)
	r = append(r, " HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nAuthorization: Bearer "...)
	r = append(r, token...)
	r = append(r, "\r\nContent-Length: "...)
	r = strconv.AppendInt(r, int64(len(c.body)), 10)
	r = append(r, "\r\n\r\n"...)
	c.request = append(r, c.body...)
	if err := c.conn.SetDeadline(time.Now().Add(answerWithin)); err != nil {
		return err
	}
	if _, err := c.conn.Write(c.request); err != nil {
		return fmt.Errorf("writing a request: %w", err)
	}
	line, length, err := readHead(c.in)
	if err != nil {
		return fmt.Errorf("reading an answer: %w", err)
	}
	if !bytes.HasPrefix(line, []byte("HTTP/1.1 200")) {
		answer, _ := io.ReadAll(io.LimitReader(c.in, int64(min(length, 500))))
		return fmt.Errorf("the gateway answered %s: %s", line, answer)
	}
	if _, err := c.in.Discard(length); err != nil {
		return fmt.Errorf("reading an answer: %w", err)
	}
	return nil
}

var errNoLength = errors.New("a message without a Content-Length")

// readHead reads the first line and the headers of a request or response.
func readHead(in *bufio.Reader) (first []byte, length int, err error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return nil, 0, err
	}
	first = append([]byte(nil), bytes.TrimSpace(line)...)
	length = -1
	for {
		if line, err = in.ReadSlice('\n'); err != nil {
			return nil, 0, err
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			break
		}
		const name = "content-length:"
		if len(line) > len(name) && bytes.EqualFold(line[:len(name)], []byte(name)) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(name):]))); err != nil {
				return nil, 0, err
			}
		}
	}
	if length < 0 {
		return nil, 0, errNoLength
	}
	return first, length, nil
}
