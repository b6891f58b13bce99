package dispatcher_test

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"intumwa/internal/testenv"
)

// slack stretches deadlines, for machines that do other work as well.
const slack = 3

// chaos says that the long forms of the tests are wanted.
var chaos = os.Getenv("INTUMWA_CHAOS") != ""

// captureLimit bounds the capture: the first so many octets of a run are looked
// at.
const captureLimit = 64 << 20

// capture is every octet that dispatchers of this package's tests wrote to
// simulated carriers, by connection.
var capture struct {
	sync.Mutex
	size        int
	connections []*captured
}

// captured is what one connection carried.
type captured struct {
	net.Conn
	octets []byte
}

// capturing notes what its connections receive.
type capturing struct{ net.Listener }

func (c capturing) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	noted := &captured{Conn: conn}
	capture.Lock()
	capture.connections = append(capture.connections, noted)
	capture.Unlock()
	return noted, nil
}

func (c *captured) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		capture.Lock()
		if capture.size += n; capture.size <= captureLimit {
			c.octets = append(c.octets, b[:n]...)
		}
		capture.Unlock()
	}
	return n, err
}

// SetLinger is the simulator's for a reset.
func (c *captured) SetLinger(seconds int) error {
	return c.Conn.(*net.TCPConn).SetLinger(seconds)
}

// checkCapture has Wireshark's dissector read every PDU that this package's
// tests had the dispatcher emit: it must know them all and find none malformed.
// TestMain asks when the tests have ended.
//
// Source: rule carriers 8.7.
func checkCapture() (report string, err error) {
	tshark, err := testenv.FindTool("tshark")
	if err != nil {
		if testenv.Strict() {
			return "", err
		}
		return err.Error(), nil
	}
	dir, err := os.MkdirTemp("", "intumwa-capture-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "emitted.pcap")
	want, err := writeCapture(file)
	if err != nil || want.pdus == 0 {
		return "no PDU was emitted", err
	}
	out, err := exec.Command(tshark, "-r", file, "-d", "tcp.port==2775,smpp", "-o", "tcp.check_checksum:FALSE",
		"-T", "fields", "-e", "smpp.command_id", "-e", "_ws.malformed", "-e", "_ws.expert.message").Output()
	if err != nil {
		return "", fmt.Errorf("tshark: %w", err)
	}
	seen := map[uint32]int{}
	var complaints []error
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		ids, complaint, _ := strings.Cut(line, "\t")
		if complaint = strings.TrimSpace(complaint); complaint != "" && len(complaints) < 20 {
			complaints = append(complaints, fmt.Errorf("wireshark: %s (commands %s)", complaint, ids))
		}
		for _, text := range strings.Split(ids, ",") {
			if id, err := strconv.ParseUint(text, 0, 32); err == nil {
				seen[uint32(id)]++
			}
		}
	}
	for id, n := range want.commands {
		if seen[id] != n {
			complaints = append(complaints, fmt.Errorf("command_id %#08x: %d emitted, Wireshark knows %d", id, n, seen[id]))
		}
	}
	return fmt.Sprintf("Wireshark decoded the %d PDUs of %d kinds that were emitted on %d connections", want.pdus, len(want.commands), want.connections),
		errors.Join(complaints...)
}

type emitted struct {
	pdus, connections int
	commands          map[uint32]int
}

// writeCapture writes the whole PDUs of the capture as a pcap file: raw IPv4,
// one TCP segment a PDU (or several, for a long one).
func writeCapture(name string) (emitted, error) {
	capture.Lock()
	defer capture.Unlock()
	file, err := os.Create(name)
	if err != nil {
		return emitted{}, err
	}
	defer file.Close()
	w := bufio.NewWriter(file)
	le := binary.LittleEndian
	header := le.AppendUint32(nil, 0xA1B2C3D4)
	header = le.AppendUint16(le.AppendUint16(header, 2), 4)
	header = le.AppendUint32(le.AppendUint32(header, 0), 0)
	header = le.AppendUint32(le.AppendUint32(header, 1<<16), 101) // snaplen, LINKTYPE_RAW
	_, _ = w.Write(header)
	e := emitted{commands: map[uint32]int{}}
	for i, c := range capture.connections {
		e.connections++
		sequence := uint32(1)
		for rest := c.octets; len(rest) >= 16; {
			n := int(binary.BigEndian.Uint32(rest))
			if n < 16 || n > len(rest) {
				break // cut off by the carrier, or by the limit
			}
			e.pdus++
			e.commands[binary.BigEndian.Uint32(rest[4:])]++
			for pdu := rest[:n]; len(pdu) > 0; {
				segment := pdu[:min(len(pdu), 60_000)]
				writePacket(w, uint16(10_000+i%50_000), sequence, segment)
				sequence += uint32(len(segment))
				pdu = pdu[len(segment):]
			}
			rest = rest[n:]
		}
	}
	return e, w.Flush()
}

var packets atomic.Int64

func writePacket(w *bufio.Writer, port uint16, sequence uint32, payload []byte) {
	be, le := binary.BigEndian, binary.LittleEndian
	total := 40 + len(payload)
	ip := []byte{0x45, 0}
	ip = be.AppendUint16(ip, uint16(total))
	ip = append(ip, 0, 0, 0x40, 0, 64, 6, 0, 0, 127, 0, 0, 2, 127, 0, 0, 1)
	tcp := be.AppendUint16(be.AppendUint16(nil, port), 2775)
	tcp = be.AppendUint32(be.AppendUint32(tcp, sequence), 1)
	tcp = append(tcp, 0x50, 0x18, 0xFF, 0xFF, 0, 0, 0, 0)
	now := packets.Add(1)
	record := le.AppendUint32(le.AppendUint32(nil, uint32(1_700_000_000+now/1_000_000)), uint32(now%1_000_000))
	record = le.AppendUint32(le.AppendUint32(record, uint32(total)), uint32(total))
	for _, segment := range [][]byte{record, ip, tcp, payload} {
		_, _ = w.Write(segment) // Flush tells
	}
}

// elapsed is for figures in logs.
func elapsed(since time.Time) time.Duration { return time.Since(since).Round(time.Millisecond) }
