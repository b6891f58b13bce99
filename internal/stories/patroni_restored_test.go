package stories

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"intumwa/internal/testenv"
)

// A cluster under Patroni is restored to an earlier moment in the order of docs/patroni.md: the messages of that moment
// are there, later ones are not, and all nodes follow. While Patroni runs, restore is refused; finish is refused where
// nothing was recovered.
func TestPatroniRestored(t *testing.T) {
	testenv.Long(t)
	t.Parallel()
	busy(t)
	w := play(t, scene{patroni: true, config: tree{"database": tree{"require_standby": true}}})
	c := w.patroni
	leader := c.Leader()
	keeps := w.backupsOf(leader.Data, leader.Port())
	c.Ctl("edit-config", "--force", "-p", "archive_mode=on", "-p", "archive_timeout=60s", "-p", "archive_command="+
		keeps.archive)
	c.Ctl("restart", "intumwa", "--force")
	c.Healthy()
	w.pool.Reset()
	if now := c.Leader(); now.Name != leader.Name {
		t.Fatalf("%s leads after the restart, want %s", now.Name, leader.Name)
	}

	shop := w.company("Isoko", 1000)
	keeps.does("base")
	base := time.Now()
	before := w.becomes(shop.sends(w.number(), "Amahoro").ID, "sent")
	w.eventually(patience, "the base backup is older than a second",
		func() bool { return time.Since(base) > 1100*time.Millisecond })
	moment := scalar[string](w, `SELECT clock_timestamp()::text`)
	after := w.becomes(shop.sends(w.number(), "Amahoro ya none").ID, "sent")
	keeps.archived()
	w.gateway.terminate()
	w.pool.Reset()

	keeps.refuses("stop Patroni on every machine first (docs/patroni.md)", "restore", moment)
	keeps.refuses("nothing to finish", "finish")
	for _, n := range c.Nodes {
		if n != leader {
			n.Stop()
		}
	}
	leader.Stop()
	keeps.does("restore", moment)
	byHand := func(verb string) {
		t.Helper()
		control, err := filepath.Abs(filepath.Join(c.Programs, "pg_ctl"))
		if err != nil {
			t.Fatal(err)
		}
		if output, err := keeps.tries(control, "-D", leader.Data, "-w", "-t", "60", "-l", filepath.Join(keeps.folder, "log"),
			verb); err != nil {
			log, _ := os.ReadFile(filepath.Join(keeps.folder, "log"))
			t.Fatalf("pg_ctl %s: %v\n%s%s", verb, err, output, log)
		}
	}
	byHand("start")
	keeps.does("finish")
	byHand("stop")
	c.Remove()
	leader.Start()
	w.eventually(patience, "the restored node leads", func() bool { return c.Leader() == leader })
	for _, n := range c.Nodes {
		if n != leader {
			if err := os.Rename(n.Data, n.Data+".old"); err != nil {
				t.Fatal(err)
			}
			n.Start()
		}
	}
	c.Healthy()
	w.pool.Reset()

	var restored struct {
		Last int64 `json:"last_message_id"`
		Next int64 `json:"next_message_id"`
	}
	w.orders(&restored, "", "restored")
	if restored.Last < before.MessageID || restored.Next <= after.MessageID {
		t.Errorf("the next id is %d after %d; until then there were %d and %d", restored.Next, restored.Last,
			before.MessageID, after.MessageID)
	}
	ids := map[string]bool{}
	for _, r := range shop.records() {
		ids[r.ID] = true
	}
	if !ids[before.ID] || ids[after.ID] {
		t.Errorf("the message before the moment is there: %v; the one after: %v", ids[before.ID], ids[after.ID])
	}
	w.gateway.start()
	w.bound()
	w.becomes(shop.sends(w.number(), "Amakuru mashasha").ID, "sent")
}
