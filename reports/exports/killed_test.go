package exports

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	"intumwa/internal/postgres"
	"intumwa/internal/testenv"
)

// writerOf names the database of a process that only writes exports: this test's program, started again.
const writerOf = "INTUMWA_TEST_EXPORT_WRITER"

func TestMain(m *testing.M) {
	if database := os.Getenv(writerOf); database != "" {
		pool, err := postgres.Open(context.Background(), database, postgres.Options{MaxConns: 2})
		if err != nil {
			panic(err)
		}
		e, err := New(pool, 0, slog.New(slog.DiscardHandler))
		if err != nil {
			panic(err)
		}
		_ = e.Run(context.Background()) // until it is killed
		return
	}
	testenv.Main(m)
}

// writer starts a process that writes exports, and returns what kills it (kill -9).
func (w *world) writer() (kill func()) {
	w.t.Helper()
	process := exec.Command(os.Args[0])
	process.Env = append(os.Environ(), writerOf+"="+w.pool.Config().ConnString())
	process.Stderr = w.t.Output()
	if err := process.Start(); err != nil {
		w.t.Fatal(err)
	}
	kill = func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	}
	w.t.Cleanup(kill)
	return kill
}

// TestProcessKilled: processes that write a file are killed (SIGKILL) at any moment, another finishes it, and it equals
// what one process writes at once.
func TestProcessKilled(t *testing.T) {
	w := newWorld(t, 0)
	const messages = 12*step + 7
	w.fill(messages)
	if err := w.ask(Request{Bodies: true}); err != nil {
		t.Fatal(err)
	}
	comes := func(what string, is func(x Export) bool) Export {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			x := w.listed(false)[0]
			if is(x) {
				return x
			}
			if time.Now().After(end) {
				t.Fatalf("never came true: %s; it has %d messages", what, x.Messages)
			}
		}
	}
	killed := 0
	for written := int64(0); killed < 2; killed++ {
		kill := w.writer()
		comes("it is written further", func(x Export) bool { return x.Messages > written })
		kill()
		x := w.listed(false)[0]
		if x.DoneAt != nil {
			break
		}
		if _, err := w.Get(t.Context(), 1, false, x.ID); err == nil {
			t.Error("half a file is offered")
		}
		written = x.Messages
		w.exec(`update exports set taken_until = now()`) // a minute later
	}
	w.writer()
	x := comes("it is finished", func(x Export) bool { return x.DoneAt != nil })
	if want := w.streamed(Request{Bodies: true}); killed == 0 || x.Messages != messages ||
		!bytes.Equal(w.content(false), want) {
		t.Errorf("after %d kills: %d bytes and %d messages, not %d", killed, x.Size, x.Messages, len(want))
	}
}
