package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// clockTick is the unit of /proc/*/stat: 100 a second on every Linux.
const clockTick = 100

// The parts that use CPU, in the order of the report.
var parts = []string{"gateway", "PostgreSQL", "Redis", "carrier", "client and sink"}

// cpu is the CPU time that each part has used so far, in seconds.
func (r *rig) cpu() (map[string]float64, error) {
	used := make(map[string]float64, len(parts))
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		return nil, fmt.Errorf("reading our own CPU time: %w", err)
	}
	used["client and sink"] = seconds(own.Utime) + seconds(own.Stime)
	for name, pid := range map[string]int{"gateway": r.gateway.Process.Pid, "Redis": r.redis, "carrier": r.simulator.Process.Pid} {
		p, err := processTimes(pid)
		if err != nil {
			return nil, fmt.Errorf("reading the CPU time of the %s: %w", name, err)
		}
		used[name] = p.own
	}
	postgres, err := familyTime(r.postgres)
	if err != nil {
		return nil, fmt.Errorf("reading the CPU time of PostgreSQL: %w", err)
	}
	used["PostgreSQL"] = postgres
	return used, nil
}

func seconds(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }

// times of a process: its own, and that of its children that have ended and
// were waited for.
type times struct {
	parent        int
	own, children float64
}

func processTimes(pid int) (times, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return times{}, err
	}
	// The name, in parentheses, may hold anything: fields count from behind it.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 15 {
		return times{}, fmt.Errorf("%d fields in the stat of process %d", len(fields), pid)
	}
	var n [5]int
	for i, field := range []int{1, 11, 12, 13, 14} { // ppid, utime, stime, cutime, cstime
		if n[i], err = strconv.Atoi(string(fields[field])); err != nil {
			return times{}, fmt.Errorf("reading the stat of process %d: %w", pid, err)
		}
	}
	return times{n[0], float64(n[1]+n[2]) / clockTick, float64(n[3]+n[4]) / clockTick}, nil
}

// familyTime is the CPU time of a process with all its children, those that
// have ended too.
func familyTime(pid int) (float64, error) {
	head, err := processTimes(pid)
	if err != nil {
		return 0, err
	}
	sum := head.own + head.children
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	for _, path := range all {
		child, err := strconv.Atoi(filepath.Base(path))
		if err != nil {
			continue
		}
		if p, err := processTimes(child); err == nil && p.parent == pid { // it may have ended meanwhile
			sum += p.own
		}
	}
	return sum, nil
}
