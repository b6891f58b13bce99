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

// previousVariable names the gateway of the release before (scripts/previous.sh), race
// detector and all; without it a fleet is replaced by the same build, as at a restart.
const previousVariable = "INTUMWA_STORIES_PREVIOUS"

// A fleet of the release before becomes one of this release under load, as docs/upgrade.md
// says: the new binary migrates while the old processes work, and go on working on the new
// schema until they are replaced, one by one; one of them dies meanwhile and comes back as it
// was. Customers, sent by their proxy to the API that is there, see 200 and nothing else;
// nothing is lost and nothing arrives twice. Then an API and a dispatcher go back to the
// release before.
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
	var proxy atomic.Pointer[gateway] // to whom it sends all; nil: to both
	l := shop.sendsMany(&load{messages: 100_000, senders: 16, pause: 60 * time.Millisecond, keyed: true, at: func(n int) *gateway {
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
	w.binary = "" // the old one's commands refuse a newer schema
	to := w.schema()
	more()
	// One that waits dies, and comes back as it was: it does not migrate.
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
	return ask[int64](w, `SELECT max(version_id) FROM intumwa_schema`)
}
