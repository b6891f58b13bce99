package sms

// Split is a text cut into segments, in the order of sending.
type Split struct {
	Encoding Encoding
	// Segments are the payloads: one septet in a byte, or UTF-16BE; without the concatenation header. They share one
	// buffer, but append to one does not overwrite the next.
	Segments [][]byte
}

// EncodeUCS2 is Encode in UCS-2 for every text: for carriers whose default alphabet lacks characters of GSM 7-bit.
func EncodeUCS2(text string) (Encoding, []byte) {
	return UCS2, appendUCS2(make([]byte, 0, 2*len(text)), text)
}

// SplitEncoded cuts a payload of Encode or EncodeUCS2 for carriers that take an 8-bit reference (UDH8) or SAR
// parameters: 160 septets or 70 code units in a single segment, else 153 or 67 in each. It cuts no escape pair and no
// surrogate pair. An empty text has no segments; a long one may have more than MaxSegments, which callers refuse. wide
// is for carriers that require a 16-bit reference (UDH16): 152 septets or 66 code units a segment, possibly more
// segments than Count returns; the difference is not charged.
func SplitEncoded(encoding Encoding, payload []byte, wide bool) Split {
	if wide {
		return divide(encoding, payload, widePartSeptets, widePartUnits)
	}
	return divide(encoding, payload, concatSeptets, concatUnits)
}

// Encode returns the payload of a whole text, for carriers that take it in message_payload.
func Encode(text string) (Encoding, []byte) {
	size := Measure(text)
	if size.Encoding == UCS2 {
		return UCS2, appendUCS2(make([]byte, 0, 2*size.Units), text)
	}
	return GSM7, appendGSM7(make([]byte, 0, size.Units), text)
}

func divide(encoding Encoding, payload []byte, septets, units int) Split {
	single, several := singleSeptets, septets
	if encoding == UCS2 {
		single, several = 2*singleUnits, 2*units
	}
	if len(payload) == 0 {
		return Split{Encoding: encoding}
	}
	if len(payload) <= single {
		return Split{Encoding: encoding, Segments: [][]byte{payload[:len(payload):len(payload)]}}
	}
	segments := make([][]byte, 0, len(payload)/(several-2)+1)
	for len(payload) > several {
		end := several
		switch {
		case encoding == UCS2 && isHighSurrogate(payload[end-2]):
			end -= 2
		case encoding == GSM7 && payload[end-1] == escape:
			end-- // the second septet of a pair is never 0x1B, so a pair begins here
		}
		segments = append(segments, payload[:end:end])
		payload = payload[end:]
	}
	segments = append(segments, payload[:len(payload):len(payload)])
	return Split{Encoding: encoding, Segments: segments}
}
