package sms_test

import (
	"testing"

	"github.com/warthog618/sms/encoding/tpdu"
	"pgregory.net/rapid"

	"intumwa/sms"
)

// TestUDH: warthog618/sms, in the place of a handset, reads both headers as written.
func TestUDH(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ref, total := rapid.Uint16().Draw(t, "ref"), rapid.ByteMin(1).Draw(t, "total")
		seq := rapid.ByteRange(1, total).Draw(t, "seq")
		narrow, wide := sms.UDH8(byte(ref), total, seq), sms.UDH16(ref, total, seq)
		for _, try := range []struct {
			header []byte
			ref    int
		}{{narrow[:], int(byte(ref))}, {wide[:], int(ref)}} {
			var header tpdu.UserDataHeader
			n, err := header.UnmarshalBinary(append(try.header, "text"...))
			of, at, as, ok := header.ConcatInfo()
			if err != nil || n != len(try.header) || !ok || of != int(total) || at != int(seq) || as != try.ref {
				t.Fatalf("% X is segment %d of %d under %d (%v), %d bytes, %v", try.header, at, of, as, ok, n, err)
			}
			// We read it too, behind another element. One segment alone is not a long message.
			ports := append([]byte{try.header[0] + 6, 5, 4, 0, 1, 0, 2}, try.header[1:]...)
			if as, of, at, ok := sms.Concatenation(ports); ok != (total > 1) || of != int(total) || at != int(seq) ||
				as != try.ref {
				t.Fatalf("% X: we read segment %d of %d under %d (%v)", ports, at, of, as, ok)
			}
		}
	})
}
