package main

import (
	"fmt"

	"github.com/prometheus/procfs"
)

// userHZ is the unit of /proc/*/stat: 100 a second on every Linux.
const userHZ = 100

// cpuTime is the CPU time of a process, in seconds.
func cpuTime(pid int) (float64, error) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return 0, fmt.Errorf("looking for process %d: %w", pid, err)
	}
	stat, err := proc.Stat()
	return stat.CPUTime(), err
}

// familyTime is the CPU time of a process with all its children, those that
// have ended too.
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

// machineTime is the CPU time that anybody on this machine has used.
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
