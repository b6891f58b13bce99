// Package carriersim is a carrier that lives in a test or on a laptop: a real
// SMPP 3.4 message centre on TCP which developers run as `intumwa carrier-sim`
// and which the test suite runs in its own process.
//
// It is strict about what it is told and inventive about how it answers:
//
//   - Every PDU is decoded by a codec of its own, which shares no line with the
//     gateway's, so that a fault in one is not mirrored by the other. What breaks
//     the protocol is refused with the status the specification names and kept
//     (Carrier.Violations).
//   - The last two digits of the recipient choose the message's fate (Fates):
//     delivered, undeliverable, throttled, silent, receipt before response, id in
//     hex, and so on. Faults do the same for a whole session or carrier and can
//     be switched while it runs.
//   - Receipts go back over any bound transceiver or receiver of the same
//     system_id, never more than ReceiptWindow unanswered on one of them, and are
//     delivered again when they are refused for the moment, not answered in time,
//     or lost with their connection.
//
// One reader and one writer serve a session; one courier serves the carrier and
// owns everything that happens later (delayed responses, receipts, timeouts).
// The lock order is Carrier.mu, then session.mu. Memory is bounded: the log of
// submits is a ring, waiting receipts are capped (past the cap submit_sm gets
// ESME_RMSGQFUL), and nobody is read from faster than he reads.
//
// Not implemented, and answered with generic_nack: query_sm, cancel_sm,
// replace_sm, submit_multi and data_sm from the client.
package carriersim
