// Package smpp speaks SMPP 3.4 to one carrier endpoint and keeps the bind
// alive: codec, session, window, pacing, keep-alive, reconnection.
//
// A Bind is one bind to a carrier (a transceiver session, or a transmitter and a
// receiver session that stand and fall together). What operators call a link is
// one or more binds with the same settings (dispatcher.Link). Bind.Run dials, binds, serves and
// reconnects until its context ends; Bind.Submit sends one submit_sm (one
// segment) and reports its fate exactly once. Receipts and mobile-originated
// messages arrive through Options.Deliver and are answered to the carrier only
// when the owner says so, with Delivery.Respond.
//
// # What a Result promises
//
// NotWritten: not one whole submit_sm left this process; sending it again
// cannot make a duplicate. NoAnswer: it was written and the bind died (or
// Options.UnknownHold passed) without an answer; the carrier may have it.
// Rejected: the carrier answered with an error status. Accepted: the carrier
// answered ESME_ROK. A slow answer is none of these: while the bind lives, the
// message keeps its window slot and waits.
//
// # Codec
//
// The codec is github.com/fiorix/go-smpp (pdu, pdufield, pdutlv); none of its
// types leaves this package, and its session layer is not used. Frames are
// read and bounded here, header-only PDUs and responses are written here.
package smpp
