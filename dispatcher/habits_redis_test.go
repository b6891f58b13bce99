package dispatcher_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"
	"github.com/redis/go-redis/v9"

	"intumwa/dispatcher"
	"intumwa/internal/testenv"
	"intumwa/messages"
	"intumwa/queue"
	"intumwa/sms"
	"intumwa/tools/carriersim"
)

// carriedWithin is how long a message may wait for its carrier whatever Redis
// does. The promise is 2 s; the rest is for a machine that does other work.
const carriedWithin = 5 * time.Second

// redisFault is what a neighbour, an operator or a network does to Redis.
type redisFault struct {
	name string
	// begin does it and returns how to end it.
	begin func(*redisWorld) (end func())
	quiet bool // the queue bears it: it may stay usable
}

var redisFaults = []redisFault{
	{name: "killed", begin: func(w *redisWorld) func() { w.server.Kill(); return w.server.Start }},
	{name: "OOM", begin: func(w *redisWorld) func() { return w.config("maxmemory", "1", "0") }},
	{name: "NOREPLICAS", begin: func(w *redisWorld) func() { return w.config("min-replicas-to-write", "1", "0") }},
	{name: "READONLY", begin: func(w *redisWorld) func() {
		w.do("REPLICAOF", "127.0.0.1", "1")
		return func() { w.do("REPLICAOF", "NO", "ONE") }
	}},
	{name: "MISCONF", begin: (*redisWorld).misconf},
	{name: "NOPERM", begin: func(w *redisWorld) func() {
		w.do("ACL", "SETUSER", "default", "-@write")
		return func() { w.do("ACL", "SETUSER", "default", "+@all") }
	}},
	{name: "LOADING", begin: func(w *redisWorld) func() {
		return w.proxy.answer("-LOADING Redis is loading the dataset in memory\r\n")
	}},
	{name: "garbage", begin: func(w *redisWorld) func() { return w.proxy.answer("HTTP/1.1 400 Bad Request\r\n\r\n") }},
	{name: "OK to everything", begin: func(w *redisWorld) func() { return w.proxy.answer("+OK\r\n") }},
	{name: "3 s a command", begin: func(w *redisWorld) func() { return w.proxy.slow(3 * time.Second) }},
	{name: "stands still", begin: func(w *redisWorld) func() {
		w.do("CLIENT", "PAUSE", "5000", "ALL") // UNPAUSE would wait as well
		return func() {}
	}},
	{name: "evicts", begin: func(w *redisWorld) func() {
		back := w.config("maxmemory-policy", "allkeys-random", "noeviction")
		more := w.config("maxmemory", "1", "0")
		return func() { more(); back() }
	}},
	{name: "forgets all, again and again", begin: func(w *redisWorld) func() { return w.again("FLUSHALL") }},
	{name: "FLUSHALL", begin: once("FLUSHALL"), quiet: true},
	{name: "SCRIPT FLUSH", begin: func(w *redisWorld) func() { return w.again("SCRIPT", "FLUSH") }, quiet: true},
	{name: "ring overwritten", begin: onLanes("SET", "ring", "x"), quiet: true},
	{name: "bell overwritten", begin: onLanes("SET", "bell", "x"), quiet: true},
	{name: "stream overwritten", begin: onLanes("SET", "stream:*", "x"), quiet: true},
	{name: "stream overwritten again and again", begin: func(w *redisWorld) func() {
		return w.again("EVAL", `for _, k in ipairs(KEYS) do redis.call('SET', k, 'x') end`, "2", w.key(queue.Single, "stream:0"), w.key(queue.Batch, "stream:1"))
	}},
	{name: "trimmed again and again", begin: func(w *redisWorld) func() {
		return w.again("EVAL", `for _, k in ipairs(KEYS) do redis.call('XTRIM', k, 'MAXLEN', 0) end`, "2", w.key(queue.Single, "stream:0"), w.key(queue.Batch, "stream:1"))
	}},
	{name: "ids used up", begin: onLanes("XADD", "stream:*", "18446744073709551615-18446744073709551615", "m", "1", "c", "1")},
	{name: "an id of next year", begin: onLanes("XADD", "stream:*", fmt.Sprint(time.Now().AddDate(1, 0, 0).UnixMilli(), "-0"), "m", "1", "c", "1"), quiet: true},
	{name: "ring of nonsense", begin: onLanes("ZADD", "ring", "inf", "nobody"), quiet: true},
	{name: "entries of nonsense", begin: onLanes("XADD", "stream:*", "*", "m", "x", "c", "99999999999999999999"), quiet: true},
}

func once(args ...any) func(*redisWorld) func() {
	return func(w *redisWorld) func() { w.do(args...); return func() {} }
}

func onLanes(args ...any) func(*redisWorld) func() {
	return func(w *redisWorld) func() { return w.onLanes(args...) }
}

// TestRedisFails: whatever Redis does, what was accepted reaches its carrier,
// alone or of a batch, within two seconds, once; and when Redis is well again it
// is used again.
func TestRedisFails(t *testing.T) {
	t.Parallel()
	for _, fault := range redisFaults {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			w := newRedisWorld(t)
			sim := w.carrier(carriersim.Options{Name: "lumitel"})
			w.start(sim.mno(func(c *dispatcher.Carrier) { c.Links[0].TPS = 1000 }))
			all := w.post(3) // and the queue has them
			w.accepted(sim, len(all), carriedWithin*slack)
			w.until("the feeders of both lanes wait at their bells", func() bool { return w.blocked() >= 2 })

			end := fault.begin(w)
			start, times := time.Now(), []time.Duration{}
			for range 4 {
				before := time.Now()
				all = append(all, w.post(2)...)
				w.accepted(sim, len(all), 30*time.Second)
				times = append(times, time.Since(before).Round(10*time.Millisecond))
			}
			t.Logf("FIGURE %-36s carried after %v", fault.name, times)
			for _, waited := range times {
				if waited > carriedWithin {
					t.Errorf("carried after %v, not within %v", waited, carriedWithin)
				}
			}
			if !fault.quiet && w.metric("intumwa_queue_faults_total") == 0 {
				t.Errorf("no fault was counted in %v", time.Since(start))
			}

			end()
			w.eventually(30*time.Second, func() bool {
				if w.metric("intumwa_queue_usable") < 2 {
					return false
				}
				past := w.metric("intumwa_queue_bypassed_total")
				all = append(all, w.post(1)...)
				w.accepted(sim, len(all), 30*time.Second)
				return w.metric("intumwa_queue_bypassed_total") == past
			}, func() string { return "messages go by Redis again" })
			w.await("sent", 20*time.Second, all...)
			w.clean(sim)
			w.settledAll()
			audit, err := w.store.Audit(t.Context(), 2*time.Hour)
			if err != nil || audit.StuckPending != 0 || audit.OrphanQueue != 0 {
				t.Errorf("audit %+v, %v", audit, err)
			}
		})
	}
}

// redisWorld is a world with a Redis of its own, behind a proxy.
type redisWorld struct {
	*world
	server *testenv.Server
	direct *redis.Client // past the proxy
	proxy  *redisProxy
}

func newRedisWorld(t *testing.T) *redisWorld {
	t.Helper()
	server := testenv.NewRedisServer(t)
	options, err := redis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	w := &redisWorld{server: server, direct: redis.NewClient(options), proxy: newRedisProxy(t, options.Addr)}
	t.Cleanup(func() { _ = w.direct.Close() })
	w.world = newWorldWith(t, &redis.Options{Addr: w.proxy.address}, "test")
	return w
}

// post accepts n messages alone and n of a batch. As with intake, the queue may
// refuse them, after their commit.
func (w *redisWorld) post(n int) (ids []int64) {
	w.Helper()
	ids, items := w.insert(n)
	ctx, cancel := context.WithTimeout(w.Context(), 10*time.Second)
	go func() { // intake's pusher does not hold up the customer
		defer cancel()
		_ = w.queue.Push(ctx, items)
	}()
	return ids
}

// insert is post as far as the commit.
func (w *redisWorld) insert(n int) (ids []int64, items []queue.Item) {
	w.Helper()
	batch := &messages.Batch{ULID: ulid.Make(), CompanyID: 1, UserID: 1, Kind: "bulk", Sender: "DEMO", Recipients: n, Segments: n}
	var list []*messages.Message
	for i := range 2 * n {
		m := &messages.Message{ULID: ulid.Make(), CompanyID: 1, UserID: 1, Number: w.number("00"), Sender: "DEMO", Body: "Muraho", Segments: 1,
			Carrier: "lumitel", Validity: time.Hour}
		if i%2 == 1 {
			m.Batch = batch
		}
		m.Encoding, m.Segments = sms.Count(m.Body)
		list = append(list, m)
	}
	if err := pgx.BeginFunc(w.Context(), w.hot, func(tx pgx.Tx) (err error) {
		ids, err = w.store.Insert(w.Context(), tx, list)
		return err
	}); err != nil {
		w.Fatal(err)
	}
	for i, m := range list {
		items = append(items, queue.Item{MessageID: ids[i], CompanyID: 1, Carrier: "lumitel", Lane: queue.Lane(m.Lane())})
	}
	return ids, items
}

// accepted waits until the carrier has accepted n messages.
func (w *redisWorld) accepted(sim *sim, n int, within time.Duration) {
	w.Helper()
	for end := time.Now().Add(within); int(sim.Stats().Accepted) < n; <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("the carrier has %d of %d messages after %v", sim.Stats().Accepted, n, within)
		}
	}
}

func (w *redisWorld) do(args ...any) {
	w.Helper()
	if err := w.direct.Do(w.Context(), args...).Err(); err != nil && !strings.Contains(err.Error(), "BUSYGROUP") {
		w.Fatalf("%v: %v", args, err)
	}
}

// blocked is how many clients of Redis wait at a bell.
func (w *redisWorld) blocked() (n int) {
	w.Helper()
	info, err := w.direct.Info(w.Context(), "clients").Result()
	if err != nil {
		w.Fatal(err)
	}
	for line := range strings.Lines(info) {
		if _, err := fmt.Sscanf(line, "blocked_clients:%d", &n); err == nil {
			return n
		}
	}
	return 0
}

func (w *redisWorld) config(name, value, back string) func() {
	w.do("CONFIG", "SET", name, value)
	return func() { w.do("CONFIG", "SET", name, back) }
}

func (w *redisWorld) key(lane queue.Lane, name string) string {
	return "test:queue:{lumitel}:" + lane.String() + ":" + name
}

// onLanes does something to a key of both lanes, which is the second argument.
func (w *redisWorld) onLanes(args ...any) func() {
	w.Helper()
	for _, lane := range []queue.Lane{queue.Single, queue.Batch} {
		mine := append([]any{}, args...)
		mine[1] = w.key(lane, strings.ReplaceAll(args[1].(string), "*", map[queue.Lane]string{queue.Single: "0", queue.Batch: "1"}[lane]))
		w.do(mine...)
	}
	return func() {}
}

// again does something without pause until it is ended.
func (w *redisWorld) again(args ...any) func() {
	var doing sync.WaitGroup
	var ended atomic.Bool
	doing.Go(func() {
		for !ended.Load() {
			_ = w.direct.Do(context.Background(), args...).Err() // XTRIM of a key that is not there, or of another type
		}
	})
	end := func() { ended.Store(true); doing.Wait() }
	w.Cleanup(end)
	return end
}

// misconf makes Redis unable to save.
func (w *redisWorld) misconf() func() {
	w.Helper()
	dir, err := w.direct.ConfigGet(w.Context(), "dir").Result()
	if err != nil {
		w.Fatal(err)
	}
	blocker := filepath.Join(dir["dir"], "dump.rdb")
	if err := os.Mkdir(blocker, 0o700); err != nil {
		w.Fatal(err)
	}
	w.do("CONFIG", "SET", "save", "3600 1")
	w.do("BGSAVE")
	w.until("the save fails", func() bool {
		info, err := w.direct.Info(w.Context(), "persistence").Result()
		return err == nil && strings.Contains(info, "rdb_last_bgsave_status:err")
	})
	return w.config("save", "3600 1", "")
}

// redisProxy stands before Redis.
type redisProxy struct {
	address string

	mu      sync.Mutex
	lie     string        // answers every command by itself
	delay   time.Duration // of everything that Redis says
	clients map[net.Conn]struct{}
}

func newRedisProxy(t *testing.T, server string) *redisProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &redisProxy{address: listener.Addr().String(), clients: make(map[net.Conn]struct{})}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			p.clients[client] = struct{}{}
			p.mu.Unlock()
			all.Go(func() {
				p.serve(client, server)
				p.mu.Lock()
				delete(p.clients, client)
				p.mu.Unlock()
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		p.mu.Lock()
		for client := range p.clients {
			_ = client.Close()
		}
		p.mu.Unlock()
		all.Wait()
	})
	return p
}

func (p *redisProxy) state() (lie string, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lie, p.delay
}

func (p *redisProxy) answer(lie string) (end func()) {
	set := func(s string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.lie = s
	}
	set(lie)
	return func() {
		set("")
		p.mu.Lock()
		defer p.mu.Unlock()
		for client := range p.clients { // their answers are out of step
			_ = client.Close()
		}
	}
}

func (p *redisProxy) slow(delay time.Duration) (end func()) {
	set := func(d time.Duration) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.delay = d
	}
	set(delay)
	return func() { set(0) }
}

func (p *redisProxy) serve(client net.Conn, address string) {
	defer client.Close()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		defer client.Close()
		buffer := make([]byte, 64<<10)
		for {
			n, err := server.Read(buffer)
			if n > 0 {
				if _, delay := p.state(); delay > 0 {
					<-time.After(delay)
				}
				if _, err := client.Write(buffer[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	in := bufio.NewReader(client)
	for {
		command, err := readCommand(in)
		if err != nil {
			return
		}
		to := server
		if lie, _ := p.state(); lie != "" {
			to, command = client, []byte(lie)
		}
		if _, err := to.Write(command); err != nil {
			return
		}
	}
}

// readCommand reads one command as a client sends it.
func readCommand(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	command := append([]byte{}, line...)
	var n, size int
	if _, err := fmt.Sscanf(string(line), "*%d", &n); err != nil {
		return nil, err
	}
	for range n {
		if line, err = in.ReadBytes('\n'); err != nil {
			return nil, err
		}
		if _, err := fmt.Sscanf(string(line), "$%d", &size); err != nil {
			return nil, err
		}
		value := make([]byte, size+2)
		if _, err := io.ReadFull(in, value); err != nil {
			return nil, err
		}
		command = append(append(command, line...), value...)
	}
	return command, nil
}
