package sms

// Encoding is the character encoding of a text on the wire. The zero value is GSM7.
type Encoding uint8

const (
	// GSM7 is the default alphabet of 3GPP TS 23.038 with its extension table, one septet in a byte when sent.
	GSM7 Encoding = iota
	// UCS2 is UTF-16 in network byte order, two bytes a code unit.
	UCS2
)

// String returns the encoding's name in the API: "gsm7" or "ucs2".
func (e Encoding) String() string {
	if e == UCS2 {
		return "ucs2"
	}
	return "gsm7"
}

// DataCoding returns the data_coding of a submit_sm in this encoding (SMPP 3.4, 5.2.19).
func (e Encoding) DataCoding() uint8 {
	if e == UCS2 {
		return 8
	}
	return 0
}

// The capacity of a short message: 140 bytes, less the user data header in a segment of several (3GPP TS 23.040,
// 9.2.3.24). In septets for GSM7, in UTF-16 code units for UCS2.
const (
	singleSeptets = 160
	singleUnits   = 70

	concatSeptets = 153 // with a header of 6 bytes: an 8-bit reference
	concatUnits   = 67

	widePartSeptets = 152 // with a header of 7 bytes: a 16-bit reference
	widePartUnits   = 66
)

// MaxSegments is the most segments of a message: a concatenation header counts them in one byte.
const MaxSegments = 255
