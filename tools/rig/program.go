// Package rig runs programs for tools/bench, tools/drill, internal/stories and internal/testenv: processes that end
// with their starter, and a company that may send.
package rig

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Program is a process that ends with this one, even after a crash. Only one goroutine at a time may call its
// methods.
type Program struct {
	cmd     *exec.Cmd
	log     string
	ended   chan struct{}
	ending  bool // Stop or Kill was called
	dismiss func()
}

// endWithin is how long a program may take to end cleanly.
const endWithin = 20 * time.Second

// Environment returns the inherited environment without the gateway's variables.
func Environment() []string {
	kept := slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "INTUMWA_") })
	return append(kept, "GORACE=atexit_sleep_ms=0") // a race-detector build would sleep a second at each exit
}

// ownGroup keeps Ctrl-C from reaching the child.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// Start starts a program that appends its output to the file log.
func Start(log, path string, args ...string) (*Program, error) {
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening a log: %w", err)
	}
	defer func() { _ = file.Close() }()
	p := &Program{cmd: exec.Command(path, args...), log: log, ended: make(chan struct{})} //nolint:gosec,noctx // Stop and Kill end it
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr, p.cmd.SysProcAttr = Environment(), file, file, ownGroup()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", filepath.Base(log), err)
	}
	go func() {
		_ = p.cmd.Wait() // the reason is in its log
		close(p.ended)
	}()
	if p.dismiss, err = Guard(`kill -9 "$1" 2>/dev/null`, strconv.Itoa(p.PID())); err != nil {
		p.dismiss = func() {}
		p.Kill()
		return nil, err
	}
	return p, nil
}

// PID returns the process id.
func (p *Program) PID() int { return p.cmd.Process.Pid }

// Log returns the file of its output.
func (p *Program) Log() string { return p.log }

// Reload sends SIGHUP.
func (p *Program) Reload() error { return p.cmd.Process.Signal(syscall.SIGHUP) }

// Died reports whether it has ended without Stop or Kill.
func (p *Program) Died() bool {
	select {
	case <-p.ended:
		return !p.ending
	default:
		return false
	}
}

// Stop ends it cleanly, or by force after endWithin.
func (p *Program) Stop() {
	p.ending = true
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(endWithin):
	}
	p.Kill()
}

// Kill sends SIGKILL.
func (p *Program) Kill() {
	p.ending = true
	_ = p.cmd.Process.Kill()
	<-p.ended
	p.dismiss()
	p.dismiss = func() {}
}

// Tail returns the end of its output.
func (p *Program) Tail() string {
	const most = 3000
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-most):])
}

// Guard runs a shell script if this process dies without calling dismiss: after a panic or kill -9.
func Guard(script string, args ...string) (dismiss func(), err error) {
	args = append([]string{"-c", "read -r _ && exit 0; " + script, "guard"}, args...)
	cmd := exec.Command("/bin/sh", args...) //nolint:gosec,noctx // it outlives us
	cmd.SysProcAttr = ownGroup()
	alive, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("starting a guard: %w", err)
	}
	return func() {
		_, _ = alive.Write([]byte("done\n"))
		_ = alive.Close()
		_ = cmd.Wait()
	}, nil
}

// Poll calls so until it returns true.
func Poll(ctx context.Context, within, every time.Duration, so func() bool) error {
	for deadline := time.Now().Add(within); !so(); {
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %v", within)
		}
		if err := Rest(ctx, every); err != nil {
			return err
		}
	}
	return nil
}

// Rest sleeps until the time is over or ctx ends.
func Rest(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// Answers reports whether a page responds.
func Answers(ctx context.Context, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// Ports below the ephemeral range: a program that was stopped finds its port free when it returns. A process hands out
// a range in turn, so that two of its callers never pick the same one, and two processes hardly ever: one pair in 24
// has the same range. A node of Redis Cluster takes a second port, 10,000 above.
const (
	firstPort   = 10_000
	portsOfOne  = 400
	rangesOfAll = 24
)

var ports atomic.Uint32

// FreePort returns a loopback port without a listener.
func FreePort() int {
	for {
		port := firstPort + os.Getpid()%rangesOfAll*portsOfOne + int(ports.Add(1)%portsOfOne)
		if IsFree(port) {
			return port
		}
	}
}

// IsFree reports whether a loopback port has no listener.
func IsFree(port int) bool {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))) //nolint:noctx // closed at once
	if err == nil {
		_ = listener.Close()
	}
	return err == nil
}

// FreeAddress returns a loopback address without a listener.
func FreeAddress() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(FreePort())) }
