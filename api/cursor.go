package api

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"io"
	"net/url"
)

// filters are a list's name and the parameters that its cursors go on with:
// changed ones would make a list that starts in its middle.
type filters []string

var (
	messageFilters  = filters{"", "status", "batch_id", "phone_number", "from", "to"}
	batchFilters    = filters{"batch", "batch", "status", "phone_number"}
	deliveryFilters = filters{"deliveries", "state", "event", "message_id", "since"}
)

const cursorSize = 8 + 4 // the last message's id and a check of the filters

// cursor makes the opaque place in a list from which the next page goes on.
func (f filters) cursor(query url.Values, last int64) string {
	var octets [cursorSize]byte
	binary.BigEndian.PutUint64(octets[:], uint64(last))
	binary.BigEndian.PutUint32(octets[8:], f.check(query, octets[:8]))
	return base64.RawURLEncoding.EncodeToString(octets[:])
}

// read reads a cursor of the same list. It is no secret, only a place in the
// caller's own rows: the check is against mistakes.
func (f filters) read(query url.Values, cursor string) (last int64, ok bool) {
	octets, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(octets) != cursorSize {
		return 0, false
	}
	last = int64(binary.BigEndian.Uint64(octets))
	return last, last > 0 && binary.BigEndian.Uint32(octets[8:]) == f.check(query, octets[:8])
}

func (f filters) check(query url.Values, place []byte) uint32 {
	h := fnv.New32a()
	h.Write(place)
	_, _ = io.WriteString(h, f[0])
	for _, name := range f[1:] {
		_, _ = io.WriteString(h, name+"\x00"+query.Get(name)+"\x00") // a hash takes everything
	}
	return h.Sum32()
}
