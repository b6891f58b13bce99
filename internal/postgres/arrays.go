package postgres

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// useArrays makes a connection encode the slices that statements unnest without a memory allocation for each element.
// Other slices are encoded by pgx.
func useArrays(m *pgtype.Map) {
	use(m, pgtype.BoolArrayOID, func(b []byte, v bool) []byte {
		if v {
			return append(b, 1)
		}
		return append(b, 0)
	})
	use(m, pgtype.Int2ArrayOID, func(b []byte, v int16) []byte { return binary.BigEndian.AppendUint16(b, uint16(v)) })
	use(m, pgtype.Int4ArrayOID, func(b []byte, v int32) []byte { return binary.BigEndian.AppendUint32(b, uint32(v)) })
	use(m, pgtype.Int8ArrayOID, func(b []byte, v int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(v)) })
	use(m, pgtype.Float8ArrayOID, func(b []byte, v float64) []byte {
		return binary.BigEndian.AppendUint64(b, math.Float64bits(v))
	})
	use(m, pgtype.TextArrayOID, func(b []byte, v string) []byte { return append(b, v...) })
	use(m, pgtype.UUIDArrayOID, func(b []byte, v [16]byte) []byte { return append(b, v[:]...) })
	use(m, pgtype.TimestamptzArrayOID, func(b []byte, v time.Time) []byte {
		return binary.BigEndian.AppendUint64(b, uint64(v.UnixMicro()-epoch))
	})
}

// epoch is PostgreSQL's, in microseconds.
var epoch = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

func use[T any](m *pgtype.Map, oid uint32, element func([]byte, T) []byte) {
	of, _ := m.TypeForOID(oid) // pgx has all of these types
	m.RegisterType(&pgtype.Type{Name: of.Name, OID: oid, Codec: &arrayCodec[T]{of.Codec.(*pgtype.ArrayCodec), element}})
}

// arrayCodec encodes []T and []*T; element appends an element's value.
type arrayCodec[T any] struct {
	*pgtype.ArrayCodec

	element func([]byte, T) []byte
}

func (c *arrayCodec[T]) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if format == pgtype.BinaryFormatCode {
		switch value.(type) {
		case []T, []*T:
			return c
		}
	}
	return c.ArrayCodec.PlanEncode(m, oid, format, value)
}

// Encode implements pgtype.EncodePlan. A nil slice is NULL.
func (c *arrayCodec[T]) Encode(value any, b []byte) ([]byte, error) {
	switch list := value.(type) {
	case []T:
		if list == nil {
			return nil, nil
		}
		b = c.head(b, len(list), 0)
		for _, v := range list {
			b = c.append(b, v)
		}
	case []*T:
		if list == nil {
			return nil, nil
		}
		nulls := uint32(0)
		if slices.Contains(list, nil) {
			nulls = 1
		}
		b = c.head(b, len(list), nulls)
		for _, v := range list {
			if v != nil {
				b = c.append(b, *v)
			} else {
				b = binary.BigEndian.AppendUint32(b, null)
			}
		}
	}
	return b, nil
}

const null = math.MaxUint32 // length of an element that is NULL

// head appends an array's header: its dimensions, whether it has nulls, the type of its elements, its length and lower
// bound.
func (c *arrayCodec[T]) head(b []byte, n int, nulls uint32) []byte {
	for _, each := range [...]uint32{1, nulls, c.ElementType.OID, uint32(n), 1} {
		b = binary.BigEndian.AppendUint32(b, each)
	}
	return b
}

func (c *arrayCodec[T]) append(b []byte, v T) []byte {
	at := len(b)
	b = c.element(append(b, 0, 0, 0, 0), v)
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}
