// Package carriersim is a carrier simulator for tests and development: an SMPP 3.4 message
// centre on TCP. Developers run it as `intumwa-dev carrier-sim`; tests run it in their own
// process.
//
// It checks requests strictly and can respond with every known fault:
//
//   - A separate codec decodes every PDU. It shares no code with the gateway's, so the
//     simulator cannot have the same defect. Violations of the protocol are refused with
//     the specified status and recorded (Carrier.Violations).
//   - The last two digits of the recipient choose the message's fate (Fates): delivered,
//     undeliverable, throttled, silent, receipt before response, id in hex, and so on.
//     Faults do the same for a whole session or carrier and can be switched while it runs.
//   - Receipts go back over any bound transceiver or receiver of the same system_id, with
//     at most ReceiptWindow unanswered on each. They are delivered again after a temporary
//     refusal, a timeout, or the loss of their connection.
//
// Each session has a reader and a writer goroutine. The carrier has one scheduler for
// everything that happens later: delayed responses, receipts, timeouts. The lock order is
// Carrier.mu, then session.mu. Memory is limited: the log of submits is a ring, the number
// of waiting receipts is capped (above the cap submit_sm gets ESME_RMSGQFUL), and reading
// from a client stops while it does not read its responses.
//
// Not implemented, and answered with generic_nack: query_sm, cancel_sm, replace_sm,
// submit_multi and data_sm from the client.
package carriersim
