// Package smpp speaks SMPP 3.4, as the client of a carrier and as the server of a
// customer's program: codec, session, window, pacing, keep-alive, reconnection.
//
// A Bind is one bind to a carrier (a transceiver session, or a transmitter and a
// receiver session that are bound and closed together). Operators call it a link.
// Bind.Run dials, binds, serves and reconnects until its context ends; Bind.Submit sends one submit_sm (one
// segment) and reports its fate exactly once. Receipts and mobile-originated
// messages arrive through Options.Deliver; the carrier gets its response when the
// owner calls Delivery.Respond.
//
// A Peer is one connection of a customer's program. Peer.Run takes it through its bind and
// serves it; requests arrive through Admission.Request, Peer.Deliver sends one deliver_sm. Both
// ends have the same sessions: one table of unanswered requests, one window, one writer.
//
// # Results
//
// They are the same for a submit_sm to a carrier and a deliver_sm to a customer's program.
//
// NotWritten: the submit_sm was not written completely; sending it again cannot make a
// duplicate. NoAnswer: it was written, but the session ended (or Options.UnknownHold,
// of a Peer Serving.ResponseTimeout, passed) without a response; the carrier may have it. Rejected: the carrier
// responded with an error status. Accepted: the carrier responded with ESME_ROK. A slow response
// has no result yet: while the session lives, the message keeps its window slot.
//
// # Codec
//
// github.com/fiorix/go-smpp (pdu, pdufield, pdutlv) writes bind, submit_sm and deliver_sm, and reads the mandatory
// fields of deliver_sm and data_sm by the field lists in decode.go. This package does the rest:
//   - frames: go-smpp reads no PDU above 4096 bytes and loses the sequence_number of an unknown one
//   - checks: go-smpp writes overlong fields and NULs under wrong lengths, and accepts a truncated body
//   - the text: go-smpp splits off a UDH and loses a text whose UDHI is wrong; we keep the bytes
//   - TLVs in their order up to a truncated one; header-only PDUs and responses; the status of a refusal
//   - memory: go-smpp appends a C-octet string's NUL to the caller's array, so each field of submit_sm ends its own
//     array (encode.go); decoded fields share the frame's memory
//   - the session: go-smpp's mixes up responses, has no deadlines and acknowledges every receipt; it is not used
//
// None of its types leaves this package. gosmpp_test.go fuzzes our decoder against its own.
package smpp
