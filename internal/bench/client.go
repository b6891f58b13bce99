package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// client is one connection to the API. It writes requests and reads answers by
// hand: what the client costs must not be what is measured.
type client struct {
	conn    net.Conn
	in      *bufio.Reader
	request []byte
	body    []byte
}

const answerWithin = 60 * time.Second

func dial(address string) (*client, error) {
	conn, err := net.Dial("tcp", address) //nolint:noctx // loopback
	if err != nil {
		return nil, fmt.Errorf("connecting to the gateway: %w", err)
	}
	return &client{conn: conn, in: bufio.NewReaderSize(conn, 4096)}, nil
}

// send posts the client's body and returns when the answer is in; any other
// status than 200 is an error.
func (c *client) send(path, token string) error {
	r := append(c.request[:0], "POST "...)
	r = append(r, path...)
	r = append(r, " HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nAuthorization: Bearer "...)
	r = append(r, token...)
	r = append(r, "\r\nContent-Length: "...)
	r = strconv.AppendInt(r, int64(len(c.body)), 10)
	r = append(r, "\r\n\r\n"...)
	c.request = append(r, c.body...)
	if err := c.conn.SetDeadline(time.Now().Add(answerWithin)); err != nil {
		return err
	}
	if _, err := c.conn.Write(c.request); err != nil {
		return fmt.Errorf("writing a request: %w", err)
	}
	line, length, err := readHead(c.in)
	if err != nil {
		return fmt.Errorf("reading an answer: %w", err)
	}
	if !bytes.HasPrefix(line, []byte("HTTP/1.1 200")) {
		answer, _ := io.ReadAll(io.LimitReader(c.in, int64(min(length, 500))))
		return fmt.Errorf("the gateway answered %s: %s", line, answer)
	}
	if _, err := c.in.Discard(length); err != nil {
		return fmt.Errorf("reading an answer: %w", err)
	}
	return nil
}

var errNoLength = errors.New("a message without a Content-Length")

// readHead reads a request's or an answer's first line and headers.
func readHead(in *bufio.Reader) (first []byte, length int, err error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return nil, 0, err
	}
	first = append([]byte(nil), bytes.TrimSpace(line)...)
	length = -1
	for {
		if line, err = in.ReadSlice('\n'); err != nil {
			return nil, 0, err
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			break
		}
		const name = "content-length:"
		if len(line) > len(name) && bytes.EqualFold(line[:len(name)], []byte(name)) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(name):]))); err != nil {
				return nil, 0, err
			}
		}
	}
	if length < 0 {
		return nil, 0, errNoLength
	}
	return first, length, nil
}
