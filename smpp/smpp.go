// Package smpp speaks SMPP 3.4 to one carrier endpoint and keeps the bind
// alive: codec, session, window, pacing, keep-alive, reconnection.
//
// A Bind is one bind to a carrier (a transceiver session, or a transmitter and a
// receiver session that are bound and closed together). Operators call it a link.
// Bind.Run dials, binds, serves and reconnects until its context ends; Bind.Submit sends one submit_sm (one
// segment) and reports its fate exactly once. Receipts and mobile-originated
// messages arrive through Options.Deliver; the carrier gets its response when the
// owner calls Delivery.Respond.
//
// # Results
//
// NotWritten: the submit_sm was not written completely; sending it again cannot make a
// duplicate. NoAnswer: it was written, but the session ended (or Options.UnknownHold
// passed) without a response; the carrier may have it. Rejected: the carrier responded
// with an error status. Accepted: the carrier responded with ESME_ROK. A slow response
// has no result yet: while the session lives, the message keeps its window slot.
//
// # Codec
//
// github.com/fiorix/go-smpp (pdu, pdufield, pdutlv) writes bind and submit_sm and reads the mandatory fields of deliver_sm
// and data_sm by the field lists that decode.go gives it. It does not do for us, and so is done here:
//   - frames: it reads no PDU above 4096 octets, and forgets the sequence_number of one that is unknown
//   - checks: it writes what is too long, or has a NUL, under lengths that are not true; it takes a truncated body for whole
//   - the text: it takes a UDH apart, and loses the text where UDHI is set and none is there; we keep the octets
//   - TLVs in the order that they came in, up to one that is cut; header-only PDUs and responses; the status of a refusal
//   - memory: it appends the NUL of a C-octet string to the caller's array, so each field of submit_sm has an array of its own
//     that ends with it (encode.go), and what it read shares the frame's
//   - the session: its own mixes answers up, has no deadlines and answers every receipt; it is not used
//
// None of its types leaves this package. gosmpp_test.go fuzzes what is done here against its decoder.
package smpp
