package lockorder

import (
	"context"
	"fmt"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
)

// Variable is the environment variable with the folder to which the edges are written. Its name does not begin with
// INTUMWA_, because tests clear those variables for the programs that they start.
const Variable = "LOCK_ORDER"

// Tracer writes each edge of the lock order to that folder: a transaction held a lock when it waited for another.
// Without the variable it is nil.
//
// It assumes that a transaction which locks a table twice locks the same rows.
func Tracer() pgx.QueryTracer {
	return shared()
}

var shared = sync.OnceValue(func() pgx.QueryTracer {
	folder := os.Getenv(Variable)
	if folder == "" {
		return nil
	}
	file, err := os.CreateTemp(folder, "edges-")
	if err != nil {
		panic(fmt.Sprintf("%s: %v", Variable, err))
	}
	return &tracer{file: file, known: map[[4]string]bool{}}
})

type tracer struct {
	mu    sync.Mutex
	file  *os.File
	known map[[4]string]bool
	texts sync.Map // SQL → []Lock
	tests bool     // it writes the orders that tests make, not the product's
}

// guarded are tables whose rows are locked under an advisory lock. Nobody waits for these rows under it: the others who
// lock some hold it too, or lock rows of messages that have long been final.
var guarded = map[string]string{"segments": "advisory intumwa carrier", "receipts": "advisory intumwa carrier"}

// held is a lock of an open transaction.
type held struct {
	Lock
	sql   string
	stack []uintptr
}

func (t *tracer) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	t.run(conn, data.SQL)
	return ctx
}

func (t *tracer) TraceBatchStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	texts := make([]string, len(data.Batch.QueuedQueries))
	for i, q := range data.Batch.QueuedQueries {
		texts[i] = q.SQL
	}
	t.run(conn, texts...)
	return ctx
}

func (t *tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData)     {}
func (t *tracer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (t *tracer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// run notes the locks of statements that are sent together. Outside a transaction they are one.
func (t *tracer) run(conn *pgx.Conn, texts ...string) {
	const key = "locks"
	custom := conn.PgConn().CustomData()
	locks, _ := custom[key].([]held)
	if conn.PgConn().TxStatus() == 'I' {
		locks = nil
	}
	for _, sql := range texts {
		switch strings.ToLower(sql) {
		case "commit", "rollback":
			locks = nil
		}
		cached, ok := t.texts.Load(sql)
		if !ok {
			cached, _ = t.texts.LoadOrStore(sql, Locks(sql))
		}
		for _, lock := range cached.([]Lock) {
			has := func(name string) bool { return slices.ContainsFunc(locks, func(h held) bool { return h.Name == name }) }
			if guard, is := guarded[lock.Name]; has(lock.Name) || is && has(guard) {
				continue
			}
			stack := make([]uintptr, 200)
			next := held{lock, sql, stack[:runtime.Callers(3, stack)]}
			if lock.Waits {
				for _, h := range locks {
					t.edge(h, next)
				}
			}
			locks = append(locks, next)
		}
	}
	custom[key] = locks
}

// edge writes an edge when it is new and the product's.
func (t *tracer) edge(from, to held) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := [4]string{from.Name, from.sql, to.Name, to.sql}
	if t.known[key] {
		return
	}
	one, two := frames(from.stack), frames(to.stack)
	by := orderedBy(one, two)
	if test := strings.Contains(by, "_test.go:") || strings.HasPrefix(by, "internal/testenv/") ||
		strings.HasPrefix(by, "tools/"); by == "" || test != t.tests {
		return
	}
	t.known[key] = true
	line := strings.Join([]string{from.Name, place(one), firstLine(from.sql), to.Name, place(two), firstLine(to.sql), by},
		"\t")
	if _, err := fmt.Fprintln(t.file, line); err != nil {
		panic(fmt.Sprintf("writing an edge of the lock order: %v", err))
	}
}

func frames(stack []uintptr) (list []runtime.Frame) {
	for all, more := runtime.CallersFrames(stack), true; more; {
		var frame runtime.Frame
		frame, more = all.Next()
		list = append(list, frame)
	}
	return list
}

// orderedBy returns the place that put two statements in their order: in the innermost function that called both.
func orderedBy(one, two []runtime.Frame) string {
	common := 0
	for common < min(len(one), len(two)) && one[len(one)-1-common].Function == two[len(two)-1-common].Function {
		common++
	}
	return place(two[len(two)-common:])
}

// place returns the file and line of the module's innermost function above its database layer; "": there is none.
func place(list []runtime.Frame) string {
	for _, frame := range list {
		file, own := strings.CutPrefix(frame.File, "intumwa/") // by -trimpath
		if own && (path.Dir(file) != "internal/postgres" || strings.HasSuffix(file, "_test.go")) {
			return fmt.Sprintf("%s:%d", file, frame.Line)
		}
	}
	return ""
}

func firstLine(sql string) string {
	text := strings.Join(strings.Fields(sql), " ")
	return text[:min(len(text), 100)]
}
