package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"intumwa/tools/rig"
)

// twinPrefix is the prefix of the second carrier's recipients.
const twinPrefix = "+25762"

// fleetSends is the number of messages for each fleet.
const fleetSends = 12_000

// Names of a fleet's figures: all processes of a role, and the one of several that used the
// least CPU.
func roleOf(role string) string        { return "role " + role }
func idlest(role string, n int) string { return fmt.Sprintf("role %s, the idlest of %d", role, n) }

const (
	allCPU    = "CPU, gateway + PostgreSQL + Redis"
	othersHad = "the machine's CPU that others had"
)

// playFleet measures the cost of a message per role with one, two and three processes. All
// share so few processors that only costs count, not rates.
func playFleet(ctx context.Context, b *bench, s scenario) error {
	for _, f := range fleets {
		if err := b.inFleet(ctx, s, f, fleetSends); err != nil {
			return err
		}
	}
	return nil
}

// inFleet measures n single sends in a fleet and proves the ledger.
func (b *bench) inFleet(ctx context.Context, s scenario, f fleet, n int) error {
	return b.inWorld(ctx, setup{endpoint: true, fleet: &f}, func(w *world) error {
		if err := b.load(ctx, w, s.name+" "+f.String(), "single sends, 64 connections, a webhook each", n,
			w.spread(n)); err != nil {
			return err
		}
		if err := w.audited(ctx); err != nil {
			return fmt.Errorf("%s %s: %w", s.name, f, err)
		}
		return nil
	})
}

// spread alternates singles between two carriers, if there are two.
func (w *world) spread(n int) work {
	if w.twin == nil {
		return w.singles(n)
	}
	return func(ctx context.Context) (measurement, error) {
		first := w.take(n)
		return w.drive(ctx, 64, n, n, func(c *client, i int) error {
			c.body = appendSingle(c.body[:0], []string{here, twinPrefix}[i%2], first+i)
			return c.send("/v1/sms", w.token)
		})
	}
}

// fleet is the number of processes of the scalable roles. They are plain processes on one
// host. The stories prove that hosts cut off from each other lose nothing, and a simulated
// network would not change a message's cost.
type fleet struct{ apis, dispatchers, carriers int }

// fleets are the scenario's fleets. With two dispatchers, the first holds both carriers'
// links and the other is a standby, whose cost is measured.
var fleets = []fleet{{1, 1, 1}, {2, 1, 1}, {3, 1, 1}, {1, 1, 2}, {1, 2, 2}}

func (f fleet) String() string {
	return fmt.Sprintf("%d api, %d dispatchers, %d carriers", f.apis, f.dispatchers, f.carriers)
}

// member is a process of a fleet.
type member struct {
	role     string
	api, ops string // addresses; no api for other roles
	program  *rig.Program
}

// startFleet starts the processes and returns when all are ready and every carrier has
// its bind.
func (w *world) startFleet(ctx context.Context) error {
	for range freeTries {
		if err := w.launchFleet(); err != nil {
			return err
		}
		died := func() bool { return slices.ContainsFunc(w.members, func(m member) bool { return m.program.Died() }) }
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
	return fmt.Errorf("the fleet found no free addresses:\n%s", w.gateway.Tail())
}

// launchFleet starts the processes; after an error, members has those already started.
func (w *world) launchFleet() error {
	w.members = nil
	for _, of := range []struct {
		role  string
		count int
	}{{"api", w.fleet.apis}, {"dispatcher", w.fleet.dispatchers}, {"webhooks", 1}} {
		for i := range of.count {
			name := of.role + "-" + strconv.Itoa(i+1)
			m := member{role: of.role, ops: rig.FreeAddress()}
			listen := rig.FreeAddress()
			config := filepath.Join(w.dir, name+".yaml")
			err := w.configureAt(config, listen, m.ops)
			if err == nil {
				m.program, err = rig.Start(filepath.Join(w.dir, name+".log"), w.binary, "serve", "--config", config, "--roles",
					of.role)
			}
			if err != nil {
				return err
			}
			if of.role == "api" {
				m.api, w.ops, w.gateway = listen, m.ops, m.program
			}
			w.members = append(w.members, m)
		}
	}
	return nil
}

// fleetAnswers reports whether every process is ready, standbys included.
func (w *world) fleetAnswers(ctx context.Context) bool {
	return !slices.ContainsFunc(w.members, func(m member) bool { return !rig.Answers(ctx, "http://"+m.ops+"/readyz") })
}

// apiFor returns the API of the i-th connection.
func (w *world) apiFor(i int) string {
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

// processes returns the gateway's process ids.
func (w *world) processes() (pids []int) {
	if w.members == nil {
		return []int{w.gateway.PID()}
	}
	for _, m := range w.members {
		pids = append(pids, m.program.PID())
	}
	return pids
}

// byRole returns the CPU seconds of each of a fleet's processes, by role.
func (w *world) byRole() (map[string][]float64, error) {
	used := map[string][]float64{}
	for _, m := range w.members {
		seconds, err := cpuTime(m.program.PID())
		if err != nil {
			return nil, fmt.Errorf("reading the CPU time of the %s: %w", m.role, err)
		}
		used[m.role] = append(used[m.role], seconds)
	}
	return used, nil
}

// once checks that each of n messages of a finished load reached a carrier once, and that
// its webhook was posted once.
func (w *world) once(n int) error {
	var taken, again int
	for _, c := range w.ours() {
		var s carried
		if err := c.get("/stats.json", &s); err != nil {
			return err
		}
		taken, again = taken+s.Accepted, again+s.Duplicates
	}
	var wrong []error
	if again > 0 {
		wrong = append(wrong, fmt.Errorf("%d messages reached their carrier twice", again))
	}
	if taken-again != n {
		wrong = append(wrong, fmt.Errorf("%d of %d messages reached a carrier", taken-again, n))
	}
	if w.endpoint {
		reported, twice := w.sink.reported()
		if twice > 0 {
			wrong = append(wrong, fmt.Errorf("%d webhooks came twice", twice))
		}
		if reported != n {
			wrong = append(wrong, fmt.Errorf("webhooks reported %d of %d messages", reported, n))
		}
	}
	return errors.Join(wrong...)
}

// audited runs the audit.
func (w *world) audited(ctx context.Context) error {
	_, err := rig.Intumwa{Binary: w.binary, Config: w.config}.Run(ctx, "", "admin", "audit")
	return err
}
