package main

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"math"
	"path"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"
)

// gcPercent trades memory for time: what lives is some tens of megabytes, so
// four times that is little, and the collector runs a quarter as often.
const gcPercent = 400

// thrifty is the memory, in octets, up to which time is traded for it. Above, the
// collector leaves as much garbage as there is alive, no more.
const thrifty = 256 << 20

// memoryLimit is what the Go runtime is to stay below, see debug.SetMemoryLimit.
type memoryLimit struct {
	cgroup int64 // four fifths of what the cgroup may have; 0: it is not limited
	log    *slog.Logger
}

// limitMemory tells the runtime what it may take: never more than four fifths of
// the control group's limit (the rest is for what is not Go's: the sockets'
// buffers, the binary), and thrifty as long as that is enough. GOMEMLIMIT or GOGC
// in the environment win over their part of it. The result is to be run.
func limitMemory(root fs.FS, getenv func(string) string, log *slog.Logger) *memoryLimit {
	m := &memoryLimit{log: log}
	if getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if given := getenv("GOMEMLIMIT"); given != "" {
		log.Info("memory limit is taken from GOMEMLIMIT", "gomemlimit", given)
		return nil
	}
	most, err := cgroupMemory(root)
	if err != nil {
		log.Warn("cgroup memory limit cannot be read", "error", err)
	}
	m.cgroup = most / 5 * 4
	limit := m.set(0)
	log.Info("memory limit is set", "octets", limit, "cgroup_octets", most)
	return m
}

// set makes the limit thrifty, or twice what lives if that is more, but never
// more than the control group allows.
func (m *memoryLimit) set(live int64) int64 {
	limit := max(int64(thrifty), 2*live)
	if m.cgroup > 0 {
		limit = min(limit, m.cgroup)
	}
	debug.SetMemoryLimit(limit)
	return limit
}

// Run follows what lives, once a second: a limit below it would keep the
// collector running all the time.
func (m *memoryLimit) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			metrics.Read(live)
			m.set(int64(min(live[0].Value.Uint64(), math.MaxInt64/2)))
		}
	}
}

// cgroupMemory is the least memory limit, in octets, of the process's control
// group and those above it, of either version; 0 when there is none. root is the
// file system's root.
func cgroupMemory(root fs.FS) (int64, error) {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // not Linux
	}
	if err != nil {
		return 0, err
	}
	var least int64
	for line := range strings.Lines(string(text)) {
		// hierarchy:controllers:path (cgroups(7)); version 2 is 0 without controllers.
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		var mount, file string
		switch {
		case part[0] == "0" && part[1] == "":
			mount, file = "sys/fs/cgroup", "memory.max"
		case hasController(part[1], "memory"):
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		// In a container the path may be one that only the host sees: its own limit stands at the root then.
		for at := path.Clean("/" + part[2]); ; at = path.Dir(at) {
			if limit := readLimit(root, path.Join(mount, at, file)); limit > 0 && (least == 0 || limit < least) {
				least = limit
			}
			if at == "/" {
				break
			}
		}
	}
	return least, nil
}

func hasController(list, name string) bool {
	for each := range strings.SplitSeq(list, ",") {
		if each == name {
			return true
		}
	}
	return false
}

// unlimited is above what any machine has; version 1 writes such a number when
// there is no limit.
const unlimited = 1 << 60

// readLimit answers 0 when there is no limit, or none that can be read.
func readLimit(root fs.FS, name string) int64 {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || limit <= 0 || limit >= unlimited { // "max"
		return 0
	}
	return limit
}
