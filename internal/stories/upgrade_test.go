package stories

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"intumwa/internal/testenv"
	"intumwa/tools/rig"
)

// previousVariable names the previous release's gateway with the race detector
// (scripts/previous.sh). Without it, a fleet is replaced by the same build, as in a
// restart.
const previousVariable = "INTUMWA_STORIES_PREVIOUS"

// A fleet of the previous release is upgraded under load as in docs/upgrade.md. The new
// binary migrates while the old processes run; they continue on the new schema until they are
// replaced one by one, and one of them dies and restarts. Customers get only 200; no message
// is lost or arrives twice. Then an API and a dispatcher return to the previous release.
func TestRollingUpgrade(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	busy(t)
	before := cmp.Or(os.Getenv(previousVariable), built.get(t))
	one := steady()
	one.links = 2
	w := fleet(t, scene{carriers: []carrier{one}, dark: true})
	w.binary = before
	w.migrates(before)
	from := w.schema()
	for _, g := range w.gateways {
		g.build = before
		g.start()
	}
	w.bound()
	shop := w.company("Isoko", 1_000_000)
	var proxy atomic.Pointer[gateway] // the target of all requests; nil: both
	l := shop.sendsMany(&load{messages: 100_000, senders: 16, pause: 60 * time.Millisecond, keyed: true,
		at: func(n int) *gateway {
			if only := proxy.Load(); only != nil {
				return only
			}
			return w.turns(n)
		}})
	more := func() {
		l.reaches(int(l.accepted.Load()) + 100)
		carried := w.lumitel.Stats().Accepted
		w.eventually(15*time.Second, "messages are carried", func() bool { return w.lumitel.Stats().Accepted > carried+50 })
	}
	more()
	w.migrates(built.get(t))
	w.binary = "" // the old release's commands refuse a newer schema
	to := w.schema()
	more()
	// A standby dispatcher dies and restarts without migrating.
	_, waiting := w.leads("lumitel-1")
	waiting.kill()
	waiting.args = []string{"--no-migrate"}
	waiting.start()
	more()
	replace := func(g *gateway, build string, args ...string) {
		t.Helper()
		for i, api := range w.apis() {
			if api == g {
				proxy.Store(w.apis()[1-i])
				w.eventually(15*time.Second, "the proxy has taken it out", func() bool { return l.idle(api) })
			}
		}
		g.terminate()
		g.build, g.args = build, args
		g.start()
		proxy.Store(nil)
		more()
	}
	for _, g := range w.gateways {
		replace(g, "")
	}
	leader, _ := w.leads("lumitel-1")
	for _, g := range []*gateway{w.apis()[0], leader} {
		replace(g, before, "--no-migrate")
	}
	l.ends()
	l.onlyAnswers(http.StatusOK)
	l.adds(0)
	t.Logf("from schema %d to %d, %d messages", from, to, l.accepted.Load())
}

// migrates brings the database to a build's schema.
func (w *world) migrates(build string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, build, "migrate", "--config", w.gateway.config)
	cmd.Env = rig.Environment()
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("migrating: %v\n%s", err, out)
	}
}

// schema is the number of the last migration.
func (w *world) schema() int64 {
	w.t.Helper()
	return scalar[int64](w, `SELECT max(version_id) FROM intumwa_schema`)
}
