package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"intumwa/tools/rig"
)

// servers are a private PostgreSQL and Redis.
type servers struct {
	database, redisURL string // URLs; the worlds' databases are created on the same server
	admin              *pgx.Conn
	redis              *redis.Client

	postgresPID, redisPID int
	wal, waldump          string // folder, program
	statements            bool   // pg_stat_statements counts
	syncs                 string // SQL: fsyncs of the log
	version               string

	end func() error // ends servers that bench started
}

// serversScript runs at the project's root.
const serversScript = "scripts/servers.sh"

// startServers starts private servers below dir, durable as in production.
func startServers(ctx context.Context, dir string, keep bool) (*servers, error) {
	home := filepath.Join(dir, "servers")
	guarded, err := rig.Guard(`"$1" remove "$2"; rm -rf "$3"`, serversScript, home, dir)
	if err != nil {
		return nil, err
	}
	end := func() error {
		verb, last := "remove", os.RemoveAll
		if keep {
			fmt.Fprintln(os.Stderr, "bench: data and logs are in", dir)
			verb, last = "stop", func(string) error { return nil }
		}
		guarded()
		if out, err := exec.Command(serversScript, verb, home).CombinedOutput(); err != nil { //nolint:gosec,noctx // it must end
			return fmt.Errorf("ending the servers: %w\n%s", err, out)
		}
		return last(dir)
	}
	s, err := startAt(ctx, home)
	if err == nil {
		s, err = s.counting(ctx, home)
	}
	if err != nil {
		return nil, errors.Join(err, end())
	}
	var fsync, commit string
	err = s.admin.QueryRow(ctx, "SELECT current_setting('fsync'), current_setting('synchronous_commit')").Scan(
		&fsync, &commit)
	if err == nil && (fsync != "on" || commit != "on") {
		err = fmt.Errorf("PostgreSQL has fsync %s and synchronous_commit %s: that measures nothing", fsync, commit)
	}
	if err != nil {
		s.close()
		return nil, errors.Join(err, end())
	}
	s.end = func() error {
		s.close()
		return end()
	}
	return s, nil
}

func startAt(ctx context.Context, home string) (*servers, error) {
	cmd := exec.CommandContext(ctx, serversScript, "start", home) //nolint:gosec // ours
	cmd.Env = rig.Environment()
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("starting the servers (bench runs at the project's root): %w\n%s", err, out)
	}
	// The file is in shell syntax.
	const script = `. "$1/servers.env" && printf '%s\n' "$DATABASE_URL" "$REDIS_URL"`
	out, err := exec.CommandContext(ctx, "bash", "-c", script, "bash", home).Output() //nolint:gosec // ours
	if err != nil {
		return nil, fmt.Errorf("reading where the servers are: %w", err)
	}
	database, cache, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return openServers(ctx, database, cache)
}

// counting restarts the servers with pg_stat_statements, if PostgreSQL has it.
func (s *servers) counting(ctx context.Context, home string) (*servers, error) {
	var available bool
	err := s.admin.QueryRow(
		ctx, "SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pg_stat_statements')").Scan(&available)
	if err != nil || !available {
		return s, err
	}
	err = s.set(ctx, "shared_preload_libraries = 'pg_stat_statements'")
	s.close()
	if err != nil {
		return nil, err
	}
	if out, err := exec.CommandContext(ctx, serversScript, "stop", home).CombinedOutput(); err != nil { //nolint:gosec // ours
		return nil, fmt.Errorf("starting the servers again: %w\n%s", err, out)
	}
	if s, err = startAt(ctx, home); err != nil {
		return nil, err
	}
	if _, err := s.admin.Exec(ctx, "CREATE EXTENSION pg_stat_statements"); err != nil {
		s.close()
		return nil, fmt.Errorf("making pg_stat_statements: %w", err)
	}
	s.statements = true
	return s, nil
}

// openServers connects to running servers.
func openServers(ctx context.Context, database, cache string) (_ *servers, err error) {
	s := &servers{database: database, redisURL: cache, end: func() error { return nil }}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.admin, err = pgx.Connect(ctx, database); err != nil {
		return nil, fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	options, err := redis.ParseURL(cache)
	if err != nil {
		return nil, fmt.Errorf("reading the address of Redis: %w", err)
	}
	s.redis = redis.NewClient(options)
	about, err := s.redisInfo(ctx, "server")
	if err != nil {
		return nil, err
	}
	s.redisPID = int(about["process_id"])

	var data string
	if err := s.admin.QueryRow(ctx, `SELECT current_setting('data_directory'), current_setting('server_version'),
			CASE WHEN to_regclass('pg_stat_wal') IS NULL THEN 'NULL'
			ELSE '(SELECT to_jsonb(w)->>''wal_sync'' FROM pg_stat_wal w)' END`).
		Scan(&data, &s.version, &s.syncs); err != nil {
		return nil, fmt.Errorf("asking PostgreSQL how it is set up: %w", err)
	}
	s.wal = filepath.Join(data, "pg_wal")
	file, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return nil, fmt.Errorf("looking for the process of PostgreSQL: %w", err)
	}
	first, _, _ := strings.Cut(string(file), "\n")
	if s.postgresPID, err = strconv.Atoi(first); err != nil {
		return nil, fmt.Errorf("reading the process of PostgreSQL: %w", err)
	}
	program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", s.postgresPID))
	if err != nil {
		return nil, fmt.Errorf("looking for the programs of PostgreSQL: %w", err)
	}
	s.waldump = filepath.Join(filepath.Dir(program), "pg_waldump")

	// A run's WAL is kept until it is read. So no segment is recycled, and filling each new
	// one with zeros would stop all commits for up to 0.1 s.
	return s, s.set(ctx, "wal_keep_size = '4GB'", "wal_init_zero = off")
}

// set changes settings of PostgreSQL. Those that need a restart take effect at the next one.
func (s *servers) set(ctx context.Context, settings ...string) error {
	for _, setting := range settings {
		if _, err := s.admin.Exec(ctx, "ALTER SYSTEM SET "+setting); err != nil {
			return fmt.Errorf("setting up PostgreSQL (%s): %w", setting, err)
		}
	}
	if _, err := s.admin.Exec(ctx, "SELECT pg_reload_conf()"); err != nil {
		return fmt.Errorf("setting up PostgreSQL: %w", err)
	}
	return nil
}

func (s *servers) redisInfo(ctx context.Context, section string) (map[string]int64, error) {
	text, err := s.redis.Info(ctx, section).Result()
	if err != nil {
		return nil, fmt.Errorf("asking Redis what it did: %w", err)
	}
	numbers := map[string]int64{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			numbers[name] = n
		}
	}
	return numbers, nil
}

func (s *servers) close() {
	if s.admin != nil {
		_ = s.admin.Close(context.Background())
	}
	if s.redis != nil {
		_ = s.redis.Close()
	}
}
