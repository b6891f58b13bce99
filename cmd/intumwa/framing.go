package main

import (
	"bytes"
	"strconv"
	"sync/atomic"
)

// framing follows a client's octets from request to request, to see what
// net/http takes silently although another program between it and the client may
// read it in another way (request smuggling, RFC 9112, 11.2): Content-Length
// beside Transfer-Encoding, Content-Length twice, Transfer-Encoding in HTTP/1.0,
// folded header lines. What net/http refuses by itself is left to it.
//
// It runs ahead of the server by what the server has read and not used yet, so a
// doubtful request in a pipeline also costs those before it: they come from the
// same hand.
type framing struct {
	doubtful atomic.Bool // from the first such request on

	part      part
	line      []byte // what is kept of the line that is being read
	cut       bool   // something of it is not kept
	first     bool   // a request line has been read
	old       bool   // HTTP/1.0
	length    int64  // Content-Length
	lengths   int    // how many of it
	encodings int    // how many Transfer-Encoding
	left      int64  // octets of the body or chunk to come
}

type part int

const (
	inHead part = iota
	inBody
	inChunkSize
	inChunk
	afterChunk
	inTrailer
	lost // it is no HTTP any more; the server ends the connection
)

// maxLine is what is kept of a line: more than what is looked for.
const maxLine = 256

func (f *framing) feed(b []byte) {
	for len(b) > 0 {
		switch f.part {
		case inBody, inChunk:
			n := min(int64(len(b)), f.left)
			b, f.left = b[n:], f.left-n
			if f.left > 0 {
				continue
			}
			if f.part == inChunk {
				f.part = afterChunk
			} else {
				f.part = inHead
			}
		case lost:
			return
		default:
			end := bytes.IndexByte(b, '\n')
			if end < 0 {
				f.keep(b)
				return
			}
			f.keep(b[:end])
			b = b[end+1:]
			f.ended(bytes.TrimSuffix(f.line, []byte{'\r'}))
			f.line, f.cut = f.line[:0], false
		}
	}
}

// keep keeps the beginning of a line; of a request line the end, where the
// version stands.
func (f *framing) keep(b []byte) {
	if f.part == inHead && !f.first {
		if f.line = append(f.line, b[max(0, len(b)-maxLine):]...); len(f.line) > maxLine {
			f.line = append(f.line[:0], f.line[len(f.line)-maxLine:]...)
		}
		return
	}
	n := min(len(b), maxLine-len(f.line))
	f.line = append(f.line, b[:n]...)
	f.cut = f.cut || n < len(b)
}

func (f *framing) ended(line []byte) {
	switch f.part {
	case inHead:
		switch {
		case !f.first && len(line) > 0:
			f.first, f.old = true, bytes.HasSuffix(line, []byte("HTTP/1.0"))
			f.length, f.lengths, f.encodings = 0, 0, 0
		case !f.first: // an empty line before a request
		case len(line) == 0:
			f.head()
		default:
			f.header(line)
		}
	case inChunkSize:
		size, _, _ := bytes.Cut(line, []byte{';'})
		n, err := strconv.ParseUint(string(bytes.TrimSpace(size)), 16, 62)
		switch {
		case err != nil || f.cut:
			f.lose()
		case n == 0:
			f.part = inTrailer
		default:
			f.part, f.left = inChunk, int64(n)
		}
	case afterChunk:
		if f.part = inChunkSize; len(line) > 0 {
			f.lose()
		}
	case inTrailer:
		if len(line) == 0 {
			f.part = inHead
		}
	case inBody, inChunk, lost:
	}
}

func (f *framing) header(line []byte) {
	if line[0] == ' ' || line[0] == '\t' {
		f.doubtful.Store(true)
		return
	}
	name, value, _ := bytes.Cut(line, []byte{':'})
	switch name, value = bytes.TrimSpace(name), bytes.TrimSpace(value); {
	case bytes.EqualFold(name, []byte("Content-Length")):
		f.lengths++
		length, err := strconv.ParseUint(string(value), 10, 62)
		if err != nil || f.cut {
			f.doubtful.Store(true)
		}
		f.length = int64(length)
	case bytes.EqualFold(name, []byte("Transfer-Encoding")):
		f.encodings++
	}
}

// head is what the end of a request's head decides.
func (f *framing) head() {
	f.first = false
	if f.lengths > 1 || f.encodings > 1 || f.encodings > 0 && (f.lengths > 0 || f.old) {
		f.doubtful.Store(true)
	}
	switch {
	case f.encodings > 0:
		f.part = inChunkSize
	case f.length > 0:
		f.part, f.left = inBody, f.length
	}
}

func (f *framing) lose() {
	f.part = lost
	f.doubtful.Store(true)
}
