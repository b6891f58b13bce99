package configs

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// TLV is an optional parameter of every submit_sm of a carrier.
type TLV struct {
	Tag   uint16
	Value []byte
}

// StaticTLVs are the carrier's optional parameters by rising tag. A tag is 0x1401 or 5121; a value is text, or bytes as
// hex:00FF.
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

// cutTags are sar_msg_ref_num, sar_total_segments, sar_segment_seqnum and message_payload: the dispatcher sets them.
var cutTags = []uint16{0x020C, 0x020E, 0x020F, 0x0424}

// maxTLV bounds the value of a TLV: a few of them and a text of 64 KiB must fit into a
// PDU.
const maxTLV = 255

func parseTLV(tag, value string) (TLV, error) {
	n, err := strconv.ParseUint(tag, 0, 16)
	if err != nil {
		return TLV{}, errors.New("must have a tag from 0x0000 to 0xFFFF")
	}
	if slices.Contains(cutTags, uint16(n)) {
		return TLV{}, errors.New("cannot be static: it describes how the text is cut")
	}
	raw := []byte(value)
	if digits, ok := strings.CutPrefix(value, "hex:"); ok {
		if raw, err = hex.DecodeString(digits); err != nil {
			return TLV{}, errors.New("has hex: without pairs of hexadecimal digits after it")
		}
	}
	if len(raw) > maxTLV {
		return TLV{}, fmt.Errorf("must not be longer than %d bytes", maxTLV)
	}
	return TLV{Tag: uint16(n), Value: raw}, nil
}

// CommandStatus parses the key of an error class, 0x58 or 88.
func CommandStatus(code string) (uint32, error) {
	n, err := strconv.ParseUint(code, 0, 32)
	if err != nil || n == 0 {
		return 0, errors.New("must be a command_status such as 0x58, other than 0")
	}
	return uint32(n), nil
}

// InterfaceVersion parses an interface_version: 0x33, 0x34 or 0x50, also written 3.3, 3.4 or 5.0.
func InterfaceVersion(text string) (uint8, error) {
	for version, words := range map[uint8][]string{0x33: {"0x33", "51", "3.3", "33"},
		0x34: {"0x34", "52", "3.4", "34", ""}, 0x50: {"0x50", "80", "5.0", "5", "50"}} {
		if slices.Contains(words, text) {
			return version, nil
		}
	}
	return 0, errors.New("must be 0x33, 0x34 or 0x50")
}

// AllAddresses are the link's addresses, in the order in which they are tried.
func (l *Link) AllAddresses() []string {
	var all []string
	if l.Address != "" {
		all = append(all, l.Address)
	}
	return append(all, l.Addresses...)
}

// TLSConfig is the link's TLS configuration with its files; nil for plain TCP. Without a configured ServerName each
// address uses its own.
func (l *Link) TLSConfig() (*tls.Config, error) { return l.TLS.config() }

// TLSConfig is the TLS configuration of Redis with its files; nil if redis.tls is
// false. Without a configured ServerName each address uses its own.
func (r *Redis) TLSConfig() (*tls.Config, error) { return r.TLS.config() }

func (t *TLS) config() (*tls.Config, error) {
	if !t.Enabled {
		return nil, nil
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
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
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("reading cert and key: %w", withoutPath(err))
	}
	out.Certificates = []tls.Certificate{pair}
	return out, nil
}
