package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is one that bench started; it ends with bench, however that ends.
type process struct {
	cmd     *exec.Cmd
	log     string
	ended   chan struct{}
	dismiss func()
}

// ownGroup keeps a Ctrl-C for bench alone.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// environment is what processes inherit: nothing that sets up a gateway, or
// makes PostgreSQL forgetful.
func environment() []string {
	kept := slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "INTUMWA_") })
	return append(kept, "GORACE=atexit_sleep_ms=0") // built with the race detector, it would sleep a second at each exit
}

func spawn(log, binary string, args ...string) (*process, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p := &process{cmd: exec.Command(binary, args...), log: log, ended: make(chan struct{})} //nolint:gosec,noctx // the program to measure; end and kill end it
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr, p.cmd.SysProcAttr = environment(), file, file, ownGroup()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", filepath.Base(log), err)
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is in its log
		close(p.ended)
	}()
	if p.dismiss, err = guard(`kill -9 "$1" 2>/dev/null`, strconv.Itoa(p.pid())); err != nil {
		p.dismiss = func() {}
		p.kill()
		return nil, err
	}
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// stop ends it in good order, or by force when that takes too long.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(endWithin):
	}
	p.kill()
}

// kill is kill -9; of one that has ended it changes nothing.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
	p.dismiss()
	p.dismiss = func() {}
}

// tail is what it said last.
func (p *process) tail() string {
	const most = 3000
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-most):])
}

// clockTick is the unit of /proc/*/stat: 100 a second on every Linux.
const clockTick = 100

// times of a process: its own, and that of its children that have ended and
// were waited for, in seconds.
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
	n, err := numbers(text[bytes.LastIndexByte(text, ')')+1:], 1, 11, 12, 13, 14) // ppid, utime, stime, cutime, cstime
	if err != nil {
		return times{}, fmt.Errorf("reading the stat of process %d: %w", pid, err)
	}
	return times{n[0], float64(n[1]+n[2]) / clockTick, float64(n[3]+n[4]) / clockTick}, nil
}

// numbers picks fields of a line.
func numbers(line []byte, which ...int) ([]int, error) {
	fields := bytes.Fields(line)
	n := make([]int, len(which))
	for i, field := range which {
		if field >= len(fields) {
			return nil, fmt.Errorf("only %d fields", len(fields))
		}
		var err error
		if n[i], err = strconv.Atoi(string(fields[field])); err != nil {
			return nil, err
		}
	}
	return n, nil
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

// machineTime is the CPU time that anybody on this machine has used.
func machineTime() (float64, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	n, err := numbers(line, 1, 2, 3, 6, 7, 8) // user, nice, system, irq, softirq, steal
	if err != nil {
		return 0, fmt.Errorf("reading /proc/stat: %w", err)
	}
	sum := 0
	for _, ticks := range n {
		sum += ticks
	}
	return float64(sum) / clockTick, nil
}
