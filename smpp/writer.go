package smpp

import (
	"errors"
	"fmt"
	"os"
	"time"
)

const (
	// writeBatch is the approximate size of one write in bytes.
	writeBatch = 64 << 10
	// maxControl bounds the responses, in bytes, that wait for the writer. Beyond it the
	// reader stops reading, because the peer does not read.
	maxControl = 64 << 10
)

// batch is the PDUs of one write.
type batch struct {
	raw []byte
	// ends holds, for each submit_sm in it, the offset behind it; the first has
	// the given order, the others follow one by one.
	ends  []int
	first uint64
	// control is the place of its last control PDU.
	control uint64
}

// write sends the queued PDUs: control PDUs first and without pace, then as many submits
// as the pace allows, all in one write.
func (s *session) write() {
	var b batch
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		wait := s.gather(&b)
		if len(b.raw) > 0 {
			if err := s.flush(&b); err != nil {
				s.end(err)
				return
			}
			continue
		}
		timer.Reset(wait)
		select {
		case <-s.kick:
		case <-timer.C:
		case <-s.dead:
			return
		}
	}
}

// gather fills b with the PDUs that may be written now. If there are none, it returns how
// long until the pace allows the next submit.
func (s *session) gather(b *batch) (wait time.Duration) {
	b.raw, b.ends = b.raw[:0], b.ends[:0]
	wait = time.Hour
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writerIdle = false
	if len(s.control) > 0 {
		b.raw = append(b.raw, s.control...)
		s.control = s.control[:0]
		b.control = s.controlQueued
		s.changed.Broadcast()
	}
	if s.queue.len() > 0 {
		now := time.Now()
		for s.queue.len() > 0 && len(b.raw) < writeBatch {
			if w := s.owner.pace.take(now); w > 0 {
				wait = w
				break
			}
			p := s.queue.pop()
			if len(b.ends) == 0 {
				b.first = p.order
			}
			p.written = now
			b.raw = append(b.raw, p.frame...)
			b.ends = append(b.ends, len(b.raw))
		}
		s.admitWaitingLocked()
	}
	s.writerIdle = len(b.raw) == 0
	if s.writerIdle && s.draining {
		s.changed.Broadcast()
	}
	return wait
}

// flush writes the batch and records which submits were written. A submit that was
// written in part only counts as not written, because the peer cannot decode it.
func (s *session) flush(b *batch) *closure {
	n, err := 0, s.conn.SetWriteDeadline(time.Now().Add(s.owner.writeTimeout))
	if err == nil {
		n, err = s.conn.Write(b.raw)
	}
	s.owner.tracers.wrote(b.raw[:n])
	whole := len(b.ends)
	for whole > 0 && b.ends[whole-1] > n {
		whole--
	}
	if whole > 0 {
		s.mu.Lock()
		s.sent = b.first + uint64(whole) - 1
		s.mu.Unlock()
		s.owner.pace.written(time.Now())
		s.owner.metrics.written(whole)
	}
	switch {
	case err == nil:
		s.mu.Lock()
		s.controlWritten = b.control
		s.mu.Unlock()
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &closure{reasonWriteTimeout, fmt.Errorf("the peer stopped reading: nothing written for %s",
			s.owner.writeTimeout)}
	}
	return &closure{reasonWriteError, fmt.Errorf("writing: %w", err)}
}

// send queues a PDU ahead of every submit.
func (s *session) send(h header, body ...byte) {
	s.mu.Lock()
	s.sendLocked(h, body...)
	s.mu.Unlock()
}

func (s *session) sendLocked(h header, body ...byte) {
	if s.closing != nil {
		return
	}
	before := len(s.control)
	s.control = appendPDU(s.control, h, body...)
	s.controlQueued += uint64(len(s.control) - before)
	s.wakeLocked()
	s.owner.metrics.sent(h.command, h.status)
}

// awaitControlRoom blocks the reader while too many responses wait to be written.
func (s *session) awaitControlRoom() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.control) > maxControl && s.closing == nil {
		s.changed.Wait()
	}
}
