package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/procfs"

	"intumwa/internal/rig"
)

// fleet is how many processes there are of the roles of which there may be several that
// work. Webhooks are delivered by one.
type fleet struct{ apis, dispatchers, carriers int }

// member is a process of a fleet.
type member struct {
	role    string
	api     string // address; "" of other roles
	program *rig.Program
}

// twinPrefix are the second carrier's recipients.
const twinPrefix = "+25762"

// growthSends is how many messages a load of the scenario growth has.
const growthSends = 20_000

// playGrowth measures what a message costs each role, and how the rates change with the
// number of processes: on so few processors that all share, the costs count and not the
// rates.
func playGrowth(ctx context.Context, b *bench, _ scenario) error {
	for _, f := range []fleet{{1, 1, 1}, {2, 1, 1}, {3, 1, 1}, {1, 1, 2}, {1, 2, 2}} {
		err := b.inWorld(ctx, setup{endpoint: true, fleet: &f}, func(w *world) error {
			name := fmt.Sprintf("growth %d api, %d dispatchers, %d carriers", f.apis, f.dispatchers, f.carriers)
			if err := b.load(ctx, w, name+", singles", "single sends, 64 connections, a webhook each", growthSends, w.spread(growthSends)); err != nil {
				return err
			}
			if f != (fleet{1, 1, 1}) {
				return nil
			}
			if err := b.load(ctx, w, name+", bulk", "bulk of 500, a webhook each", growthSends, w.bulk(growthSends)); err != nil {
				return err
			}
			if err := b.load(ctx, w, name+", alone", "100 single sends a second, each at its time, a webhook each", 1500, w.paced(100, 1500)); err != nil {
				return err
			}
			return b.record(name+", disk", "what single sends with a webhook leave on the disk", growthSends, 1, func() (measurement, error) {
				return w.left(ctx, growthSends)
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// spread is singles, for two carriers in turn where there are two.
func (w *world) spread(n int) work {
	if w.twin == nil {
		return w.singles(n)
	}
	return func(ctx context.Context) (measurement, error) {
		first := w.take(n)
		return w.drive(ctx, 64, n, n, func(c *client, i int) error {
			c.body = appendSingle(c.body[:0], []string{here, twinPrefix}[i%2], first+i)
			return c.send("/v1/sms", w.tokens[i%len(w.tokens)])
		})
	}
}

// startFleet starts a process for each role and returns when all are ready and every
// carrier has its bind.
func (w *world) startFleet(ctx context.Context) error {
	for range freeTries {
		if err := w.launchFleet(); err != nil {
			return err
		}
		died := func() bool {
			for _, m := range w.members {
				if m.program.Died() {
					return true
				}
			}
			return false
		}
		err := poll(ctx, startWithin, func() bool { return died() || w.bound() && w.fleetAnswers(ctx) })
		if err == nil && !died() {
			return nil
		}
		for _, m := range w.members {
			m.program.Kill()
		}
		if err != nil {
			return fmt.Errorf("the fleet is not ready and bound: %w\n%s", err, w.gateway.Tail())
		}
	}
	return errors.New("the fleet found no free addresses")
}

func (w *world) launchFleet() error {
	w.members = nil
	for role, n := range map[string]int{"api": w.fleet.apis, "dispatcher": w.fleet.dispatchers, "webhooks": 1} {
		for i := range n {
			name := role + "-" + strconv.Itoa(i+1)
			m := member{role: role}
			api, ops := rig.FreeAddress(), rig.FreeAddress()
			config := filepath.Join(w.dir, name+".yaml")
			if err := w.configureAt(config, api, ops); err != nil {
				return err
			}
			var err error
			if m.program, err = rig.Start(filepath.Join(w.dir, name+".log"), w.binary, "serve", "--config", config, "--roles", role); err != nil {
				return err
			}
			if role == "api" {
				m.api, w.ops, w.gateway = api, ops, m.program
			}
			w.members = append(w.members, m)
		}
	}
	return nil
}

// fleetAnswers reports whether every api takes connections.
func (w *world) fleetAnswers(ctx context.Context) bool {
	for _, m := range w.members {
		if m.api != "" && !rig.Answers(ctx, "http://"+m.api+"/v1/openapi.json") {
			return false
		}
	}
	return true
}

// door is the API that the i-th connection goes to.
func (w *world) door(i int) string {
	var doors []string
	for _, m := range w.members {
		if m.api != "" {
			doors = append(doors, m.api)
		}
	}
	if len(doors) == 0 {
		return w.api
	}
	return doors[i%len(doors)]
}

// processes are those of the gateway.
func (w *world) processes() (pids []int) {
	if w.members == nil {
		return []int{w.gateway.PID()}
	}
	for _, m := range w.members {
		pids = append(pids, m.program.PID())
	}
	return pids
}

// byRole is the CPU time of a fleet's processes, in seconds.
func (w *world) byRole() (map[string]float64, error) {
	used := map[string]float64{}
	for _, m := range w.members {
		seconds, err := cpuTime(m.program.PID())
		if err != nil {
			return nil, fmt.Errorf("reading the CPU time of the %s: %w", m.role, err)
		}
		used["role "+m.role] += seconds
	}
	return used, nil
}

// loopback is how many octets have gone over the loopback: each is sent and received once.
func loopback() (float64, error) {
	self, err := procfs.Self()
	if err != nil {
		return 0, fmt.Errorf("looking for our own process: %w", err)
	}
	devices, err := self.NetDev()
	if err != nil {
		return 0, fmt.Errorf("reading what went over the network: %w", err)
	}
	return float64(devices["lo"].RxBytes), nil
}

// left measures what n messages leave in each table, with its indexes, once they are
// final and vacuumed.
func (w *world) left(ctx context.Context, n int) (measurement, error) {
	conn, err := pgx.Connect(ctx, w.url)
	if err != nil {
		return measurement{}, fmt.Errorf("connecting: %w", err)
	}
	defer conn.Close(ctx)
	before, err := w.sizes(ctx, conn)
	if err != nil {
		return measurement{}, err
	}
	m, err := w.singles(n)(ctx)
	if err != nil {
		return m, err
	}
	if err := w.calm(ctx); err != nil {
		return m, err
	}
	after, err := w.sizes(ctx, conn)
	if err != nil {
		return m, err
	}
	var all float64
	for _, table := range after.names {
		grown := float64(after.octets[table]-before.octets[table]) / float64(n)
		if all += grown; grown >= 1 {
			m.add("disk, "+table, "octets/message", grown)
		}
	}
	m.add("disk, all tables", "octets/message", all)
	return m, nil
}

// sizes are what tables take with their indexes.
type sizes struct {
	names  []string
	octets map[string]int64
}

func (w *world) sizes(ctx context.Context, conn *pgx.Conn) (sizes, error) {
	s := sizes{octets: map[string]int64{}}
	if err := w.tidy(ctx); err != nil {
		return s, err
	}
	rows, err := conn.Query(ctx, "SELECT relname, pg_total_relation_size(relid) FROM pg_stat_user_tables ORDER BY 2 DESC, 1")
	if err != nil {
		return s, fmt.Errorf("asking how large the tables are: %w", err)
	}
	var name string
	var octets int64
	if _, err := pgx.ForEachRow(rows, []any{&name, &octets}, func() error {
		s.names, s.octets[name] = append(s.names, name), octets
		return nil
	}); err != nil {
		return s, fmt.Errorf("asking how large the tables are: %w", err)
	}
	return s, nil
}
