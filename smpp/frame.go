package smpp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

const (
	// maxPDU is the longest PDU accepted: a 64 KiB message_payload with room
	// for everything around it.
	maxPDU = 70_000
	// readBuffer holds many short PDUs, so that one read serves them all.
	readBuffer = 32 << 10
	// frameTimeout is how long the rest of a PDU may take in all, once it has begun.
	frameTimeout = 10 * time.Second
)

var (
	errNotSMPP   = errors.New("the peer does not speak SMPP")
	errLength    = errors.New("impossible command_length")
	errStalled   = errors.New("the peer stopped in the middle of a PDU")
	errPeerClose = errors.New("the peer closed the connection")
)

// frameReader splits the byte stream into PDUs and refuses impossible lengths before
// it allocates memory for them.
type frameReader struct {
	r        *bufio.Reader
	deadline func(time.Time) error // the connection's SetReadDeadline
	large    []byte                // for PDUs longer than the buffer
	consumed int                   // bytes of the buffer behind the last frame
	longest  uint32                // command_length that is accepted
	limited  bool                  // the PDU that is being read has a deadline
}

func newFrameReader(r io.Reader, deadline func(time.Time) error) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, readBuffer), deadline: deadline, longest: maxPDU}
}

// next returns the next PDU. The body is valid until the next call. Waiting for
// a PDU to begin has no limit; waiting for its rest has.
func (f *frameReader) next() (header, []byte, error) {
	h, body, err := f.read()
	if err == nil && f.limited {
		f.limited = false
		err = f.deadline(time.Time{})
	}
	return h, body, err
}

func (f *frameReader) read() (header, []byte, error) {
	if f.consumed > 0 {
		_, _ = f.r.Discard(f.consumed) // within what is buffered: cannot fail
		f.consumed = 0
	}
	if f.r.Buffered() < headerLength {
		if _, err := f.r.Peek(1); err != nil {
			return header{}, nil, streamError(err, errPeerClose)
		}
	}
	head, err := f.begun(headerLength)
	if err != nil {
		return header{}, nil, err
	}
	length := binary.BigEndian.Uint32(head)
	if length < headerLength || length > f.longest {
		return header{}, nil, lengthError(head)
	}
	h := header{
		command:  command(binary.BigEndian.Uint32(head[4:])),
		status:   Status(binary.BigEndian.Uint32(head[8:])),
		sequence: binary.BigEndian.Uint32(head[12:]),
	}
	if int(length) > f.r.Size() {
		frame, err := f.beyond(int(length))
		if err != nil {
			return header{}, nil, err
		}
		return h, frame[headerLength:], nil
	}
	frame, err := f.begun(int(length))
	if err != nil {
		return header{}, nil, err
	}
	f.consumed = int(length)
	return h, frame[headerLength:], nil
}

// begun peeks at the first n bytes of a PDU, with a deadline for its rest.
func (f *frameReader) begun(n int) ([]byte, error) {
	if f.r.Buffered() >= n {
		return f.r.Peek(n)
	}
	if err := f.limit(); err != nil {
		return nil, err
	}
	b, err := f.r.Peek(n)
	if err != nil {
		return nil, streamError(err, io.ErrUnexpectedEOF)
	}
	return b, nil
}

// limit sets the deadline of a PDU once.
func (f *frameReader) limit() error {
	if f.limited {
		return nil
	}
	f.limited = true
	if err := f.deadline(time.Now().Add(frameTimeout)); err != nil {
		return streamError(err, errPeerClose)
	}
	return nil
}

// beyond reads a PDU that does not fit the buffer.
func (f *frameReader) beyond(n int) ([]byte, error) {
	if cap(f.large) < n {
		f.large = make([]byte, n)
	}
	frame := f.large[:n]
	if err := f.limit(); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(f.r, frame); err != nil {
		return nil, streamError(err, io.ErrUnexpectedEOF)
	}
	return frame, nil
}

// streamError names the errors of a read; eof is what an end of stream means
// at this place.
func streamError(err, eof error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return eof
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errStalled
	}
	return fmt.Errorf("reading: %w", err)
}

// lengthError names the protocol of the peer if the bytes are recognized instead of a command_length.
func lengthError(head []byte) error {
	switch s := string(head[:4]); {
	case s == "HTTP", s == "GET ", s == "POST", s == "HEAD", s == "<htm", s == "<!DO":
		return fmt.Errorf("%w but HTTP", errNotSMPP)
	case s == "SSH-":
		return fmt.Errorf("%w but SSH", errNotSMPP)
	case head[0] >= 0x14 && head[0] <= 0x17 && head[1] == 0x03:
		return fmt.Errorf("%w but TLS", errNotSMPP)
	default:
		return fmt.Errorf("%w %d (0x%08X)", errLength, binary.BigEndian.Uint32(head), binary.BigEndian.Uint32(head))
	}
}
