package postgres

import (
	"bytes"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// TestArrays compares the encoding of each kind of slice with pgx's, and counts its allocations.
func TestArrays(t *testing.T) {
	theirs, ours := pgtype.NewMap(), pgtype.NewMap()
	useArrays(ours)
	one, word, at := int16(-1), "a,\"b\" é", time.Date(1999, 12, 31, 23, 59, 59, 999_999_999,
		time.FixedZone("CAT", 2*60*60))
	for _, each := range []struct {
		oid   uint32
		value any
	}{
		{pgtype.BoolArrayOID, []bool{true, false}},
		{pgtype.Int2ArrayOID, []int16{0, 1, -1, 1<<15 - 1}},
		{pgtype.Int2ArrayOID, []*int16{nil, &one}},
		{pgtype.Int2ArrayOID, []*int16{&one, &one}},
		{pgtype.Int4ArrayOID, []int32{1<<31 - 1, -1 << 31}},
		{pgtype.Int8ArrayOID, []int64{1<<63 - 1, -1 << 63}},
		{pgtype.Int8ArrayOID, []int64{}},
		{pgtype.Int8ArrayOID, []int64(nil)},
		{pgtype.Int8ArrayOID, []*int64(nil)},
		{pgtype.Int8ArrayOID, []*int64{}},
		{pgtype.Float8ArrayOID, []float64{0, -1.5, 1e300}},
		{pgtype.TextArrayOID, []string{"", word, "NULL"}},
		{pgtype.TextArrayOID, []*string{&word, nil}},
		{pgtype.UUIDArrayOID, [][16]byte{{1}, {15: 255}}},
		{pgtype.UUIDArrayOID, []pgtype.UUID{{Bytes: [16]byte{1}, Valid: true}, {}}},
		{pgtype.TimestamptzArrayOID, []time.Time{{}, at, time.Unix(0, 0), time.Date(2400, 1, 1, 0, 0, 0, 1000, time.UTC)}},
		{pgtype.TimestamptzArrayOID, []*time.Time{&at, nil}},
		{pgtype.TimestamptzArrayOID, []pgtype.Timestamptz{{InfinityModifier: pgtype.Infinity, Valid: true}}},
	} {
		before := []byte("before")
		want, err := theirs.Encode(each.oid, pgtype.BinaryFormatCode, each.value, before)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ours.Encode(each.oid, pgtype.BinaryFormatCode, each.value, before)
		if err != nil || !bytes.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%T %v: %q, %v, want %q", each.value, each.value, got, err, want)
		}
		text, err := ours.Encode(each.oid, pgtype.TextFormatCode, each.value, before)
		if want, _ := theirs.Encode(each.oid, pgtype.TextFormatCode, each.value, before); err != nil ||
			!bytes.Equal(text, want) {
			t.Errorf("%T %v as text: %q, %v, want %q", each.value, each.value, text, err, want)
		}
	}
	room, many := make([]byte, 0, 4096), any(make([]time.Time, 100))
	if n := testing.AllocsPerRun(10, func() {
		_, _ = ours.Encode(pgtype.TimestamptzArrayOID, pgtype.BinaryFormatCode, many,
			room)
	}); n > 1 {
		t.Errorf("%v allocations for 100 elements", n)
	}
}
