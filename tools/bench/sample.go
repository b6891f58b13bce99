package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/procfs"
)

// Users of CPU time. The first three are the gateway and its stores; the others are its
// environment.
var parts = []string{"gateway", "PostgreSQL", "Redis", "carrier", "client and sink"}

const counted = 3

func cpuOf(part string) string { return "CPU, " + part }

// sample has cumulative counts at a moment.
type sample struct {
	at                time.Time
	cpu               []float64 // seconds, by part
	machine           float64   // seconds, all processes
	memory            float64   // peak resident MB of the gateway's processes
	lsn               string    // end of PostgreSQL's WAL
	syncs             *int64    // of the WAL, as reported by backends; nil: not counted
	redis             map[string]int64
	trips, statements int64                // if a relay counts them
	roles             map[string][]float64 // of a fleet: CPU of each process by role, seconds
}

func (w *world) sample(ctx context.Context) (sample, error) {
	var s sample
	var err error
	if s.redis, err = w.redisInfo(ctx, "stats"); err != nil {
		return s, err
	}
	if err := w.admin.QueryRow(ctx, "SELECT pg_current_wal_insert_lsn()::text, "+w.syncs+"::bigint").
		Scan(&s.lsn, &s.syncs); err != nil {
		return s, fmt.Errorf("asking where the log ends: %w", err)
	}
	if w.relay != nil {
		s.trips, s.statements = w.relay.trips.Load(), w.relay.statements.Load()
	}
	s.cpu = make([]float64, len(parts))
	for i, pids := range [][]int{w.processes(), nil, {w.redisPID}, w.carriers()} {
		for _, pid := range pids {
			used, err := cpuTime(pid)
			if err != nil {
				return s, fmt.Errorf("reading the CPU time of the %s: %w", parts[i], err)
			}
			s.cpu[i] += used
		}
	}
	for _, pid := range w.processes() {
		peak, err := peakMemory(pid)
		if err != nil {
			return s, fmt.Errorf("reading the memory of the gateway: %w", err)
		}
		s.memory += peak
	}
	if s.cpu[1], err = familyTime(w.postgresPID); err != nil {
		return s, fmt.Errorf("reading the CPU time of PostgreSQL: %w", err)
	}
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return s, fmt.Errorf("reading our own CPU time: %w", err)
	}
	s.cpu[4] = seconds(own.Utime) + seconds(own.Stime)
	if s.machine, err = machineTime(); err != nil {
		return s, err
	}
	if s.roles, err = w.byRole(); err != nil {
		return s, err
	}
	s.at = time.Now()
	return s, nil
}

func seconds(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }

// quiesce waits, at most two seconds, until PostgreSQL's WAL hardly grows: each load
// pays for its own trailing work.
func (w *world) quiesce(ctx context.Context) error {
	const hardly, step = 8 << 10, 250 * time.Millisecond // bytes in a step
	var before, now int64
	for range 9 {
		if err := w.admin.QueryRow(ctx, "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint").Scan(&now); err != nil {
			return fmt.Errorf("asking where the log ends: %w", err)
		}
		if now-before < hardly {
			break
		}
		before = now
		time.Sleep(step)
	}
	return nil
}

// measured runs a load of n messages and adds its costs.
func (w *world) measured(ctx context.Context, n int, load work) (measurement, error) {
	if err := w.quiesce(ctx); err != nil {
		return measurement{}, err
	}
	if w.statements {
		if _, err := w.admin.Exec(ctx, "SELECT pg_stat_statements_reset(0, oid, 0) FROM pg_database WHERE datname = $1",
			w.name); err != nil {
			return measurement{}, fmt.Errorf("forgetting earlier statements: %w", err)
		}
	}
	before, err := w.sample(ctx)
	if err != nil {
		return measurement{}, err
	}
	m, err := load(ctx)
	if err != nil {
		return m, fmt.Errorf("%w\n%s", err, w.gateway.Tail())
	}
	if err := w.quiesce(ctx); err != nil {
		return m, err
	}
	after, err := w.sample(ctx)
	if err != nil {
		return m, err
	}

	elapsed := after.at.Sub(before.at).Seconds()
	m.elapsed = elapsed
	used := make([]float64, len(parts))
	var sum, ours float64
	for i := range parts {
		used[i] = after.cpu[i] - before.cpu[i]
		ours += used[i]
		if i < counted {
			sum += used[i]
		}
	}
	per1000 := 1000 / float64(n)
	m.add(allCPU, "s/1,000", sum*per1000)
	for i, part := range parts {
		m.add(cpuOf(part), "s/1,000", used[i]*per1000)
	}
	m.add("memory of the gateway, peak", "MB", after.memory)
	m.add(othersHad, "%", max(0, 100*(after.machine-before.machine-ours)/elapsed/float64(runtime.NumCPU())))
	if w.floor {
		return m, nil
	}
	for _, role := range slices.Sorted(maps.Keys(after.roles)) {
		all, least := 0.0, math.Inf(1)
		for i, now := range after.roles[role] {
			spent := now - before.roles[role][i]
			all, least = all+spent, min(least, spent)
		}
		m.add(cpuOf(roleOf(role)), "s/1,000", all*per1000)
		if n := len(after.roles[role]); n > 1 {
			m.add(cpuOf(idlest(role, n)), "s/1,000", least*per1000)
		}
	}
	m.add("PostgreSQL's share of a core", "", used[1]/elapsed)

	each := 1 / float64(n)
	if m.wal, err = w.readWAL(ctx, before.lsn, after.lsn); err != nil {
		return m, err
	}
	var records, size, full float64
	for i := range m.wal {
		kind := &m.wal[i]
		kind.Records *= each
		kind.Bytes *= each
		full += kind.full * each
		records += kind.Records
		size += kind.Bytes
		if kind.Kind == "Transaction/COMMIT" {
			m.add("commits", "/message", kind.Records)
		}
	}
	if before.syncs != nil && after.syncs != nil {
		m.add("fsyncs of the log, about", "/message", float64(*after.syncs-*before.syncs)*each)
	}
	m.add("WAL records", "/message", records)
	m.add("WAL", "bytes/message", size)
	m.add("WAL, full pages besides", "bytes/message", full)
	if w.relay != nil {
		m.add("statements", "/message", float64(after.statements-before.statements)*each)
		m.add("round trips to PostgreSQL", "/message", float64(after.trips-before.trips)*each)
	} else if w.statements {
		if m.statements, err = w.ran(ctx, float64(n)); err != nil {
			return m, err
		}
		var calls, pages float64
		for _, s := range m.statements {
			calls += s.Calls
			pages += s.Pages
		}
		m.statements = m.statements[:min(len(m.statements), 12)]
		m.add("statements", "/message", calls)
		m.add("pages that they looked at", "/message", pages)
	}
	m.add("Redis commands", "/message", float64(
		after.redis["total_commands_processed"]-before.redis["total_commands_processed"])*each)
	m.add("round trips to Redis", "/message", float64(
		after.redis["total_reads_processed"]-before.redis["total_reads_processed"])*each)
	return m, nil
}

// statement is one of the gateway's, with its cost per message.
type statement struct {
	Text       string  `json:"text"` // its first words
	Calls      float64 `json:"calls_per_message"`
	Rows       float64 `json:"rows_per_message"`
	Seconds    float64 `json:"seconds_per_1000"`
	Pages      float64 `json:"pages_per_message"` // pages read
	WALRecords float64 `json:"wal_records_per_message"`
}

// ran lists the statements since the last reset by total time, longest first, including
// BEGIN and COMMIT.
func (w *world) ran(ctx context.Context, n float64) ([]statement, error) {
	rows, err := w.admin.Query(ctx, `
		SELECT left(trim(regexp_replace(query, '\s+', ' ', 'g')), 120), calls / $2::float8, rows / $2::float8,
			total_exec_time / $2, (shared_blks_hit + shared_blks_read) / $2::float8, wal_records / $2::float8
		FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
		WHERE datname = $1 ORDER BY total_exec_time DESC`, w.name, n)
	if err != nil {
		return nil, fmt.Errorf("reading pg_stat_statements: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[statement])
	if err != nil {
		return nil, fmt.Errorf("reading pg_stat_statements: %w", err)
	}
	return list, nil
}

// userHZ is the unit of /proc/*/stat: 100 a second on every Linux.
const userHZ = 100

// cpuTime returns the CPU time of a process, in seconds.
func cpuTime(pid int) (float64, error) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return 0, fmt.Errorf("looking for process %d: %w", pid, err)
	}
	stat, err := proc.Stat()
	return stat.CPUTime(), err
}

// peakMemory returns the peak resident memory of a process, in MB.
func peakMemory(pid int) (float64, error) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return 0, fmt.Errorf("looking for process %d: %w", pid, err)
	}
	status, err := proc.NewStatus()
	return float64(status.VmHWM) / 1e6, err
}

// familyTime returns the CPU time of a process and its children, including ended ones.
func familyTime(pid int) (float64, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return 0, fmt.Errorf("looking for processes: %w", err)
	}
	sum, found := 0.0, false
	for _, proc := range all {
		stat, err := proc.Stat()
		switch {
		case err != nil: // it has ended meanwhile
		case stat.PID == pid:
			sum, found = sum+stat.CPUTime()+float64(stat.CUTime+stat.CSTime)/userHZ, true
		case stat.PPID == pid:
			sum += stat.CPUTime()
		}
	}
	if !found {
		return 0, fmt.Errorf("there is no process %d", pid)
	}
	return sum, nil
}

// machineTime returns the CPU time of the whole machine.
func machineTime() (float64, error) {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, fmt.Errorf("looking for /proc: %w", err)
	}
	stat, err := fs.Stat()
	if err != nil {
		return 0, fmt.Errorf("reading /proc/stat: %w", err)
	}
	c := stat.CPUTotal
	return c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ + c.Steal, nil
}

// walKind is one kind of WAL record with its size.
type walKind struct {
	Kind    string  `json:"kind"`
	Records float64 `json:"records_per_message"`
	Bytes   float64 `json:"bytes_per_message"` // without images of full pages
	full    float64 // bytes of these
}

// readWAL counts the WAL between two positions, largest kind first. It reads the WAL
// itself, because the backends' statistics are up to ten seconds late.
func (s *servers) readWAL(ctx context.Context, from, to string) ([]walKind, error) {
	// Its commit flushes everything before it.
	if _, err := s.admin.Exec(ctx, "SELECT pg_logical_emit_message(true, 'bench', '')"); err != nil {
		return nil, fmt.Errorf("having the log written: %w", err)
	}
	dump := exec.CommandContext(ctx, s.waldump, "--stats=record", "-p", s.wal, "-s", from, "-e", to) //nolint:gosec // ours
	out, err := dump.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("reading the log of PostgreSQL: %w", err)
	}
	return parseWAL(string(out))
}

// walLine is "Heap/INSERT  4711 ( 12.34)  471100 ( 12.34)  8192 ( 0.12)  …": name,
// records, their bytes, bytes of full pages.
var walLine = regexp.MustCompile(`^(\S+)\s+(\d+) \([^)]*\)\s+(\d+) \([^)]*\)\s+(\d+) `)

func parseWAL(text string) ([]walKind, error) {
	var kinds []walKind
	for line := range strings.Lines(text) {
		fields := walLine.FindStringSubmatch(line)
		if fields == nil || fields[2] == "0" {
			continue
		}
		var n [3]float64
		for i, field := range fields[2:5] {
			var err error
			if n[i], err = strconv.ParseFloat(field, 64); err != nil {
				return nil, err
			}
		}
		kinds = append(kinds, walKind{Kind: fields[1], Records: n[0], Bytes: n[1], full: n[2]})
	}
	if len(kinds) == 0 {
		return nil, fmt.Errorf("pg_waldump counted nothing:\n%s", text)
	}
	slices.SortStableFunc(kinds, func(a, b walKind) int { return int(b.Bytes - a.Bytes) })
	return kinds, nil
}
