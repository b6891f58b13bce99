package configs

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"intumwa/dispatcher"
	"intumwa/smpp"
)

// TLV is an optional parameter that every submit_sm of a carrier bears.
type TLV struct {
	Tag   uint16
	Value []byte
}

// StaticTLVs are the carrier's optional parameters by rising tag. A tag is written 0x1401 or 5121; a value is its text,
// or octets as hex:00FF.
func (c *Carrier) StaticTLVs() ([]TLV, error) {
	var out []TLV
	for tag, value := range c.TLVs {
		t, err := parseTLV(tag, value)
		if err != nil {
			return nil, fmt.Errorf("tlvs.%s: %w", tag, err)
		}
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b TLV) int { return int(a.Tag) - int(b.Tag) })
	return out, nil
}

func parseTLV(tag, value string) (TLV, error) {
	n, err := strconv.ParseUint(tag, 0, 16)
	if err != nil {
		return TLV{}, errors.New("must have a tag from 0x0000 to 0xFFFF")
	}
	switch uint16(n) { // the dispatcher refuses the same ones: a test of cmd/intumwa holds the two together
	case smpp.TagMessagePayload, smpp.TagSARMessageReference, smpp.TagSARTotalSegments, smpp.TagSARSegmentSeqnum:
		return TLV{}, errors.New("cannot be static: it says how the text is cut")
	}
	octets := []byte(value)
	if digits, ok := strings.CutPrefix(value, "hex:"); ok {
		if octets, err = hex.DecodeString(digits); err != nil {
			return TLV{}, errors.New("has hex: before what are not pairs of hexadecimal digits")
		}
	}
	if len(octets) > 0xFFFF {
		return TLV{}, errors.New("must not be longer than 65535 octets")
	}
	return TLV{Tag: uint16(n), Value: octets}, nil
}

// tlvHeader is the tag and the length of a TLV, in octets.
const tlvHeader = 4

// roomForTLVs is how many octets the carrier's static TLVs may take, headers included: those of a PDU (70000, less 1024
// for everything else, as smpp has it) without what the dispatcher adds of its own.
func (c *Carrier) roomForTLVs() int {
	room := 70_000 - 1024
	if c.UserReference {
		room -= tlvHeader + 2
	}
	switch c.Concat.Is {
	case dispatcher.ConcatSAR:
		room -= tlvHeader + 2 + tlvHeader + 1 + tlvHeader + 1
	case dispatcher.ConcatPayload:
		room -= tlvHeader + 0xFFFF
	}
	return room
}

// Classes are the carrier's own classes of command_status values, written 0x58 or 88.
func (c *Carrier) Classes() (map[smpp.Status]smpp.Class, error) {
	out := make(map[smpp.Status]smpp.Class, len(c.ErrorClasses))
	for code, class := range c.ErrorClasses {
		n, err := commandStatus(code)
		if err != nil {
			return nil, fmt.Errorf("error_classes.%s: %w", code, err)
		}
		out[n] = class.Is
	}
	return out, nil
}

func commandStatus(code string) (smpp.Status, error) {
	n, err := strconv.ParseUint(code, 0, 32)
	if err != nil || n == 0 {
		return 0, errors.New("must be a command_status such as 0x58, other than 0")
	}
	return smpp.Status(n), nil
}

// TLSConfig is how the link speaks TLS, reading the files that it names; nil when it speaks plain TCP.
func (l *Link) TLSConfig() (*tls.Config, error) {
	out, err := l.TLS.config()
	if out == nil || err != nil || out.ServerName != "" {
		return out, err
	}
	host, _, err := net.SplitHostPort(string(l.Address))
	if err != nil {
		return nil, errors.New("has no server_name, and the address is not host:port")
	}
	out.ServerName = host
	return out, nil
}

// TLSConfig is how Redis is spoken to over TLS, reading the files that it names; nil when that is not asked for here. Its
// ServerName is empty unless one is given: each address's own.
func (r *Redis) TLSConfig() (*tls.Config, error) { return r.TLS.config() }

func (t *TLS) config() (*tls.Config, error) {
	if !t.Enabled {
		return nil, nil
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CA != "" {
		pem, err := os.ReadFile(string(t.CA))
		if err != nil {
			return nil, fmt.Errorf("reading ca: %w", withoutPath(err))
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("ca holds no certificate in PEM")
		}
	}
	if t.Cert == "" && t.Key == "" {
		return out, nil
	}
	pair, err := tls.LoadX509KeyPair(string(t.Cert), string(t.Key))
	if err != nil {
		return nil, fmt.Errorf("reading cert and key: %w", withoutPath(err))
	}
	out.Certificates = []tls.Certificate{pair}
	return out, nil
}

// withoutPath is why a file could not be read, without its name: that may be the key itself, put where its file's name
// belongs.
func withoutPath(err error) error {
	var file *fs.PathError
	if errors.As(err, &file) {
		return file.Err
	}
	return err
}
