package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// balloon is the file that takes all the room beside PostgreSQL's. Its filesystem is not the one that all else is on.
func (s *stage) balloon() (string, error) {
	home := filepath.Join(s.o.dir, "postgres")
	var ours, theirs syscall.Stat_t
	if err := errors.Join(syscall.Stat(s.o.dir, &ours), syscall.Stat(home, &theirs)); err != nil {
		return "", fmt.Errorf("looking at PostgreSQL's filesystem: %w", err)
	}
	if ours.Dev == theirs.Dev {
		return "", fmt.Errorf("%s is no filesystem of its own: filling it would fill the machine's", home)
	}
	return filepath.Join(home, "balloon"), nil
}

// fillDisk leaves PostgreSQL no room: what lengthens a table fails from now on, while the server answers and commits what
// needs none.
func (s *stage) fillDisk() error {
	name, err := s.balloon()
	if err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("filling the disk: %w", err)
	}
	defer func() { _ = file.Close() }()
	for _, size := range []int{1 << 20, 4 << 10} {
		lot := make([]byte, size)
		for err = nil; err == nil; {
			_, err = file.Write(lot)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			return fmt.Errorf("filling the disk: %w", err)
		}
	}
	return nil
}

// freeDisk gives the room back, and starts PostgreSQL again when it has ended for want of room for its log, as whoever
// mends a full disk has to.
func (s *stage) freeDisk(ctx context.Context) error {
	name, err := s.balloon()
	if err != nil {
		return err
	}
	if err := os.Remove(name); err != nil {
		return fmt.Errorf("making room on the disk: %w", err)
	}
	if said, err := exec.CommandContext(ctx, "scripts/servers.sh", "start", s.o.dir).CombinedOutput(); err != nil { //nolint:gosec // our own script
		return fmt.Errorf("seeing that PostgreSQL runs: %w: %s", err, strings.TrimSpace(string(said)))
	}
	return nil
}
