package api

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"intumwa/internal/testenv"
	"intumwa/sms"
)

// TestPullSamples: each sample prints the events, and started again it prints only those that came since.
func TestPullSamples(t *testing.T) {
	w := newWorld(t, worldOptions{}).settle()
	w.events("live", "")
	w.enqueue("live", 1, 2)
	p, err := madePages(Options{TestSender: testSender}, 500)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.editions["en"].content.Pull {
		t.Run(s.Name, func(t *testing.T) {
			if s.Name == "sh" {
				testenv.Tool(t, "jq")
			}
			file, args := runnable(t, s, nil)
			if s.Name == "go" { // go run would leave the program behind
				if out, err := exec.Command("go", "build", "-o", file+".out", file).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				args = []string{file + ".out"}
			} else {
				args = append(args, file)
			}
			folder := t.TempDir()
			seen := map[string]int{}
			consume := func(until func() bool) {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				cmd := exec.CommandContext(ctx, args[0], args[1:]...)
				cmd.Dir, cmd.Env = folder, append(os.Environ(), "BASE_URL="+w.server.URL+"/v1", "TOKEN="+w.tokens["live"],
					"no_proxy=*")
				out, err := cmd.StdoutPipe()
				cmd.Stderr = os.Stderr
				if err == nil {
					err = cmd.Start()
				}
				if err != nil {
					t.Fatal(err)
				}
				for lines := bufio.NewScanner(out); !until() && lines.Scan(); {
					for _, id := range eventID.FindAllString(lines.Text(), -1) {
						seen[id]++
					}
				}
				last := w.count(`SELECT max(position) FROM events`)
				w.until("the cursor is stored", func() bool {
					cursor, err := os.ReadFile(folder + "/events.cursor")
					at, ok := readPlace(sms.CompanyID(w.company["live"]), strings.TrimSpace(string(cursor)))
					return err == nil && ok && at.Position == last
				})
				cancel()
				_ = cmd.Wait() // killed
				if !until() {
					t.Fatalf("it printed %v", seen)
				}
			}
			before := int(w.count(`SELECT count(*) FROM events`))
			consume(func() bool { return len(seen) == before })
			w.enqueue("live", int64(before+1), 1)
			consume(func() bool { return len(seen) == before+1 })
			for id, n := range seen {
				if n != 1 {
					t.Errorf("%s came %d times", id, n)
				}
			}
		})
	}
}
