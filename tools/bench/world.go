package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/tools/rig"
)

// setup is how a world differs from the default: one company without an endpoint, and one
// carrier with one link and a window of 100 that responds at once.
type setup struct {
	window       int
	endpoint     bool
	otherDown    bool          // there is another carrier, at a closed port
	respDelay    time.Duration // until submit_sm_resp
	receiptDelay time.Duration // from there to the receipt
	still        bool          // no background writes of PostgreSQL, and a relay
	fleet        *fleet        // a process for each role; nil: one for all
	floor        bool          // the floor replaces the gateway
	program      bool          // a customer's program binds
}

// world is a gateway with its own database and carriers.
type world struct {
	*servers
	setup
	binary, dir string
	name        string // of the database
	url         string // of the database, as bench connects
	config      string
	api, ops    string // addresses
	binds       string // address for customers' programs

	relay      *relay // nil: none
	sink       *sink
	carrier    *carrier
	twin       *carrier // of a fleet with two carriers; nil: none
	gateway    *rig.Program
	members    []member // of a fleet, the gateway among them
	token      string
	recipients int // used so far
}

// warming is the number of messages before a measurement.
const warming = 3000

// inWorld makes a world, warms it up, runs do and closes it.
func (b *bench) inWorld(ctx context.Context, s setup, do func(w *world) error) error {
	binary, err := filepath.Abs(b.binary)
	if err != nil {
		return err
	}
	w, err := newWorld(ctx, b.servers, s, binary, b.dir)
	if err != nil {
		return err
	}
	defer w.close()
	if _, err := w.spread(warming)(ctx); err != nil {
		return fmt.Errorf("warming up: %w\n%s", err, w.gateway.Tail())
	}
	return do(w)
}

// newWorld builds everything and returns when the gateway is ready and bound.
func newWorld(ctx context.Context, on *servers, s setup, binary, below string) (_ *world, err error) {
	if s.window == 0 {
		s.window = 100
	}
	w := &world{servers: on, setup: s, binary: binary, name: "bench_" + strconv.FormatUint(rand.Uint64(), 36)}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if w.dir, err = os.MkdirTemp(below, "world-"); err != nil {
		return nil, err
	}
	w.config = filepath.Join(w.dir, "intumwa.yaml")
	if err := w.redis.FlushAll(ctx).Err(); err != nil {
		return nil, fmt.Errorf("emptying Redis: %w", err)
	}
	if _, err := w.admin.Exec(ctx, "CREATE DATABASE "+w.name); err != nil {
		return nil, fmt.Errorf("making a database: %w", err)
	}
	database, err := url.Parse(w.database)
	if err != nil {
		return nil, errors.New("the address of PostgreSQL cannot be read")
	}
	database.Path = "/" + w.name
	w.url = database.String()
	housekeeping := "on"
	if s.still {
		housekeeping = "off"
	}
	if err := w.set(ctx, "autovacuum = "+housekeeping, "full_page_writes = "+housekeeping); err != nil {
		return nil, err
	}
	if s.still {
		if w.relay, err = openRelay(w.url); err != nil {
			return nil, err
		}
	}
	if w.sink, err = newSink(); err != nil {
		return nil, err
	}
	if w.carrier, err = openCarrier(ctx, w, "carrier", s.respDelay, s.receiptDelay); err != nil {
		return nil, err
	}
	if s.fleet != nil && s.fleet.carriers > 1 {
		if w.twin, err = openCarrier(ctx, w, "twin", s.respDelay, s.receiptDelay); err != nil {
			return nil, err
		}
	}
	if err := w.configure(); err != nil {
		return nil, err
	}
	program := rig.Intumwa{Binary: w.binary, Config: w.config}
	if _, err := program.Run(ctx, "", "migrate"); err != nil {
		return nil, err
	}
	hook := ""
	if w.endpoint {
		hook = "http://" + w.sink.address() + "/"
	}
	if w.token, err = program.Company(ctx, "bench@example.com", "BENCH", hook); err != nil {
		return nil, err
	}
	return w, w.start(ctx)
}

func (w *world) configure() error {
	w.api, w.ops, w.binds = rig.FreeAddress(), rig.FreeAddress(), rig.FreeAddress()
	return w.configureAt(w.config, w.api, w.ops)
}

// configureAt writes the configuration of a process with its own addresses.
func (w *world) configureAt(file, api, ops string) error {
	database := w.url
	if w.relay != nil {
		database = w.relay.through(database)
	}
	type tree = map[string]any
	link := func(name, address string, window int) tree {
		return tree{"name": name + "-1", "address": address, "system_id": "bench", "password": "bench", "window": window,
			"tps": 0}
	}
	carriers := []tree{{"name": "bench", "prefixes": []string{"61"}, "default": true, "message_id_format": "same",
		"links": []tree{link("bench", w.carrier.smpp, w.window)}}}
	if w.otherDown {
		carriers = append(carriers, tree{"name": "other", "prefixes": []string{"79"}, "message_id_format": "same",
			"links": []tree{link("other", rig.FreeAddress(), 10)}})
	}
	if w.twin != nil {
		carriers = append(carriers, tree{"name": "twin", "prefixes": []string{"62"}, "message_id_format": "same",
			"links": []tree{link("twin", w.twin.smpp, w.window)}})
	}
	config := tree{
		"api":            tree{"listen": api, "rate_limit_per_minute": 1_000_000_000},
		"ops":            tree{"listen": ops},
		"dashboard":      tree{"listen": rig.FreeAddress(), "public_url": "http://localhost"},
		"log":            tree{"format": "json"},
		"database":       tree{"url": strings.ReplaceAll(database, "$", "$$")},
		"redis":          tree{"url": strings.ReplaceAll(w.redisURL, "$", "$$")},
		"accounts":       tree{"otp_key": "a key of this measurement alone, for codes"},
		"webhooks":       tree{"allow_private": true},
		"encryption_key": strings.Repeat("Q", 43) + "=",
		"carriers":       carriers,
	}
	if w.program {
		config["smpp_server"] = tree{"listen": w.binds}
	}
	text, err := json.MarshalIndent(config, "", "  ") // JSON is YAML
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

// start starts the gateway and returns when it is ready and bound.
func (w *world) start(ctx context.Context) error {
	if w.fleet != nil {
		return w.startFleet(ctx)
	}
	for range freeTries {
		if err := w.configure(); err != nil {
			return err
		}
		var err error
		program, args := w.binary, []string{"serve", "--config", w.config}
		if w.floor {
			program, args = "/proc/self/exe", []string{"-floor", w.api, w.ops, w.carrier.smpp, w.sink.address()}
		}
		if w.gateway, err = rig.Start(filepath.Join(w.dir, "gateway.log"), program, args...); err != nil {
			return err
		}
		err = poll(ctx, startWithin, func() bool {
			return w.gateway.Died() || rig.Answers(ctx, "http://"+w.ops+"/readyz") &&
				w.bound()
		})
		if err == nil && !w.gateway.Died() {
			return nil
		}
		tail := w.gateway.Tail()
		if err != nil {
			return fmt.Errorf("the gateway is not ready and bound: %w\n%s", err, tail)
		}
		if !strings.Contains(tail, "address already in use") {
			return fmt.Errorf("the gateway ended:\n%s", tail)
		}
		w.gateway.Kill()
	}
	return errors.New("the gateway found no free addresses")
}

// profile writes a CPU profile of the gateway over some seconds.
func (w *world) profile(file string, seconds int) error {
	response, err := http.Get(fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", w.ops, seconds)) //nolint:noctx // ours
	if err != nil {
		return fmt.Errorf("asking for a profile: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil {
		err = os.WriteFile(file, text, 0o644) //nolint:gosec // names of functions, readable by all
	}
	if err != nil {
		return fmt.Errorf("keeping a profile: %w", err)
	}
	return nil
}

func (w *world) bound() bool {
	return w.carrier.stats().Sessions == 1 && (w.twin == nil || w.twin.stats().Sessions == 1)
}

// ours are the carriers of a measurement's messages.
func (w *world) ours() []*carrier {
	if w.twin == nil {
		return []*carrier{w.carrier}
	}
	return []*carrier{w.carrier, w.twin}
}

func (w *world) carriers() (pids []int) {
	for _, c := range w.ours() {
		pids = append(pids, c.process.PID())
	}
	return pids
}

// take returns the first of n unused recipients; they repeat after a million.
func (w *world) take(n int) int {
	first := w.recipients
	w.recipients += n
	return first
}

// expect resets the counts. It returns a wait for n more final messages, which returns
// the time of the last.
func (w *world) expect(n int) (func(context.Context) (time.Time, error), error) {
	w.sink.begin()
	for _, c := range w.ours() {
		if err := c.forget(); err != nil {
			return nil, err
		}
	}
	if w.endpoint {
		return func(ctx context.Context) (time.Time, error) { return w.sink.await(ctx, n) }, nil
	}
	return func(ctx context.Context) (time.Time, error) { return w.carrier.await(ctx, n) }, nil
}

// tidy finishes PostgreSQL's pending work.
func (w *world) tidy(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, w.url)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	defer conn.Close(ctx)
	for _, statement := range []string{"VACUUM ANALYZE", "CHECKPOINT"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// close ends everything, the gateway first.
func (w *world) close() {
	for _, m := range w.members {
		m.program.Stop()
	}
	if w.gateway != nil {
		w.gateway.Stop()
	}
	for _, c := range []*carrier{w.carrier, w.twin} {
		if c != nil {
			c.process.Stop()
		}
	}
	if w.sink != nil {
		w.sink.close()
	}
	if w.relay != nil {
		w.relay.Close()
	}
	// The next world needs the servers to itself.
	if _, err := w.admin.Exec(context.Background(), "DROP DATABASE IF EXISTS "+w.name+" WITH (FORCE)"); err != nil {
		fmt.Fprintln(os.Stderr, "bench: dropping a database:", err)
	}
}

// startWithin bounds the start of a process.
const startWithin = 30 * time.Second

// poll repeats so until it returns true.
func poll(ctx context.Context, within time.Duration, so func() bool) error {
	return rig.Poll(ctx, within, 5*time.Millisecond, so)
}

// freeTries is how often a start is repeated when another process took its address.
const freeTries = 5
