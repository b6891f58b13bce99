package testenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"intumwa/tools/rig"
)

const (
	readyWithin = 60 * time.Second
	endWithin   = 30 * time.Second
	readyProbe  = 10 * time.Millisecond
)

// process is one private server with its own directory.
type process struct {
	name    string
	dir     string
	url     string
	command func() *exec.Cmd
	ready   func(context.Context) error
	stop    syscall.Signal // a clean end
	kill    syscall.Signal // an end without warning, with no further writes
	beside  func() []int   // processes that belong to it and are not its descendants; nil: none

	running *exec.Cmd // nil: down
	ended   chan struct{}
	dismiss func() // ends its guard
}

// start returns when the server answers.
func (p *process) start() error {
	if p.running != nil {
		return fmt.Errorf("%s is already running", p.name)
	}
	log, err := os.OpenFile(p.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", p.name, err)
	}
	defer log.Close()

	cmd := p.command()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", p.name, err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // we end the server, so its exit status does not matter
		close(ended)
	}()
	p.running, p.ended = cmd, ended
	if p.dismiss, err = rig.Guard(guardScript, strconv.Itoa(cmd.Process.Pid), strconv.Itoa(int(p.kill)),
		p.dir); err != nil {
		p.dismiss = func() {}
	} else {
		err = p.waitReady()
	}
	if err != nil {
		p.end(p.kill)
	}
	return err
}

func (p *process) waitReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	probe := time.NewTicker(readyProbe)
	defer probe.Stop()
	for {
		err := p.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended while starting; its log ends with:\n%s", p.name, p.logTail())
		case <-ctx.Done():
			return fmt.Errorf("%s was not ready within %v: %w; its log ends with:\n%s", p.name, readyWithin, err, p.logTail())
		case <-probe.C:
		}
	}
}

// end sends the signal and waits for the end. A server that is down is left alone.
func (p *process) end(signal syscall.Signal) {
	if p.running == nil {
		return
	}
	_ = p.signal(syscall.SIGCONT) // a frozen process handles no signal
	if err := p.running.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		_ = p.running.Process.Kill()
	}
	select {
	case <-p.ended:
	case <-time.After(endWithin):
		_ = p.running.Process.Kill()
		<-p.ended
	}
	p.dismiss()
	p.running, p.ended = nil, nil
}

// family are the server's process, those beside it, and all their descendants.
func (p *process) family() []int {
	children := make(map[int][]int)
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // fails on a bad pattern only
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue // it has ended
		}
		var pid, parent int
		var state string
		_, rest, _ := strings.Cut(string(text), ") ") // after the program's name
		if _, err := fmt.Sscan(rest, &state, &parent); err != nil {
			continue
		}
		if pid, err = strconv.Atoi(filepath.Base(filepath.Dir(stat))); err == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	family := []int{p.running.Process.Pid}
	if p.beside != nil {
		family = append(family, p.beside()...)
	}
	for i := 0; i < len(family); i++ {
		family = append(family, children[family[i]]...)
	}
	return family
}

// signal signals the server's process, then its descendants.
func (p *process) signal(signal syscall.Signal) error {
	if p.running == nil {
		return fmt.Errorf("%s does not run", p.name)
	}
	for i, pid := range p.family() {
		if err := syscall.Kill(pid, signal); err != nil && (i == 0 || !errors.Is(err, syscall.ESRCH)) {
			return fmt.Errorf("sending %v to %s: %w", signal, p.name, err)
		}
	}
	return nil
}

// crash kills all of the server's processes at once, as a power failure would: none
// notices another's death.
func (p *process) crash() error {
	if err := p.signal(syscall.SIGSTOP); err != nil { // no new process starts meanwhile
		return err
	}
	family := p.family()
	for i := len(family) - 1; i >= 0; i-- {
		_ = syscall.Kill(family[i], syscall.SIGKILL) // it may be gone
	}
	p.end(syscall.SIGKILL)
	return nil
}

// remove ends the server and deletes its directory.
func (p *process) remove() {
	p.end(p.kill)
	_ = os.RemoveAll(p.dir) // a leftover in the temporary directory is harmless
}

func (p *process) logFile() string { return filepath.Join(p.dir, "log") }

func (p *process) logTail() string {
	const most = 2000
	text, err := os.ReadFile(p.logFile())
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-most):])
}

// guardScript ends a server and deletes its directory if the test binary dies: after a panic, a test timeout or kill
// -9.
const guardScript = `
pkill -CONT -P "$1" 2>/dev/null
kill -CONT "$1" 2>/dev/null
kill -"$2" "$1" 2>/dev/null
n=0
while kill -0 "$1" 2>/dev/null && [ $n -lt 50 ]; do sleep 0.1; n=$((n+1)); done
kill -9 "$1" 2>/dev/null
rm -rf "$3"
`
