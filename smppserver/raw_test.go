package smppserver_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

// raw is a bound connection of bytes, for what smpp.Bind does not send.
type raw struct {
	w    *bank
	conn net.Conn
	last uint32
}

// raw connects and binds with a bind command.
func (w *bank) raw(p *process, command uint32) *raw {
	w.Helper()
	r := w.connect(p)
	if got := r.ask(bindAs(command, w.key.SystemID, w.password, 0x34)); got[:2] != "0 " {
		w.Fatalf("bind: %q", got)
	}
	return r
}

func (w *bank) connect(p *process) *raw {
	w.Helper()
	conn, err := net.Dial("tcp", p.address)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = conn.Close() })
	return &raw{w: w, conn: conn}
}

func bindAs(command uint32, systemID, password string, version byte) []byte {
	return pdu(command, systemID+"\x00"+password+"\x00\x00"+string([]byte{version})+"\x00\x00\x00")
}

// pdu returns a PDU with the sequence_number 0.
func pdu(command uint32, body string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(16+len(body)))
	b = binary.BigEndian.AppendUint32(b, command)
	return append(append(b, make([]byte, 8)...), body...)
}

func query(id, source string) []byte { return pdu(0x03, id+"\x00\x00\x00"+source+"\x00") }

func cancel(id string) []byte { return pdu(0x08, "\x00"+id+"\x00\x00\x00\x00\x00\x00\x00") }

// ask sends a PDU and returns the status of its response, a blank and the body.
func (r *raw) ask(b []byte) string {
	r.w.Helper()
	r.last++
	binary.BigEndian.PutUint32(b[12:], r.last)
	if _, err := r.conn.Write(b); err != nil {
		r.w.Fatal(err)
	}
	_ = r.conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	for {
		head := make([]byte, 16)
		if _, err := io.ReadFull(r.conn, head); err != nil {
			r.w.Fatal(err)
		}
		body := make([]byte, binary.BigEndian.Uint32(head)-16)
		if _, err := io.ReadFull(r.conn, body); err != nil {
			r.w.Fatal(err)
		}
		if head[4] == 0x80 && binary.BigEndian.Uint32(head[12:]) == r.last {
			return fmt.Sprint(binary.BigEndian.Uint32(head[8:]), " ", string(body))
		}
	}
}
