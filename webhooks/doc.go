// Package webhooks sends events about final messages to customers: signed, with
// retries, isolated from each other (rule api 6).
//
// # Guarantees
//
// A final message of a company with an active endpoint has exactly one row in
// webhook_deliveries, written by [Webhooks.Enqueue] in the transaction that
// settles the message: either both exist or neither. The row is never written
// again; the body is a pure function of it, so every attempt and every re-send
// sends the same octets under the same webhook-id. Delivery is at least once: a
// receiver drops what it has seen by webhook-id, or by message_id and event.
//
// # Events on request
//
// What is about no message of the company goes only to an endpoint that asked for it
// ([Askable], [Endpoint.Events]): [Webhooks.EnqueueAsked] writes the same row, with the
// body's data as it is to be sent, in the transaction of what it tells of. Its number is
// drawn from the sequence of messages, so that one order lists all. What waits in memory
// is bounded in number as before; its octets by what carriers may deliver of handsets in
// an hour (max_inbound_per_hour segments each), and new deliveries wait two seconds at most.
//
// # An attempt
//
// Success is a response with a 2xx status within the timeout; anything else is a
// failure, a redirect too. The status decides: an error while the rest of the
// response is read changes nothing. Every attempt is a row in
// webhook_attempts, written once. After a failure the delivery gets a row in
// webhook_undelivered, due after the next delay of the schedule; after
// the last failure that row stays, never due: the delivery is kept, visible, and
// sent again only by [Webhooks.Resend] and [Webhooks.Recover]. Success deletes
// the row. A delivery older than Options.Retention is deleted with all of its rows.
//
// # The owner
//
// Of all processes that run [Webhooks.Run] one delivers: the owner. It holds an
// advisory lock on a connection of its own ([lease]); the others stand by. Deliveries
// in flight exist in the owner's memory only, without a lease of each, so a delivery
// that succeeds at once costs two rows. New deliveries are read in the order of their
// numbers, each once ([arrivals]). Those that do not fit into memory, or wait there
// too long, are parked in webhook_undelivered and fetched again, company by company,
// when there is room. The owner stores once a second up to which number everything is
// done, so that the next owner reads little again. The decision and its figures are
// in docs/decisions/0001-webhook-deliveries.md.
//
// # Failures
//
//   - The owner dies: its lock ends with its connection, and another process takes
//     over within a second. Deliveries that were in flight, or whose result was not
//     stored, are called again; the lost attempt is not counted.
//   - The owner is frozen: after ten seconds without a heartbeat another process
//     cuts its connection. When it wakes it starts no call, and the results of its
//     calls in flight are not stored: each statement names the epoch of its lease
//     (the fencing epoch).
//   - The owner shuts down: it takes no new deliveries, gives the calls in flight a
//     limited time, stores their results, and releases the lock.
//   - Postgres is away: results wait in memory and no call starts. When it is back
//     and no other process took over, the owner continues where it was.
//   - An endpoint changes: pending deliveries go to the new URL, signed with the new
//     secret. It is deactivated: its pending deliveries wait, their attempts
//     untouched, until it is active again; messages that become final meanwhile emit
//     nothing (rule api 6). A change by another process takes effect with its notice
//     ([Webhooks.EndpointChanged]).
//
// # Operations
//
// [Webhooks.Deliveries] lists, [Webhooks.Resend] sends one again,
// [Webhooks.Recover] everything that was given up since a time: in batches, by the
// processes that run [Webhooks.Run], with its progress in a row. [Webhooks.Rotate]
// changes the secret so that for a day both are valid. [Webhooks.Test] calls an
// endpoint once, returns its response and records nothing. They take the company as
// an [sms.CompanyID]: another company's delivery is not found.
//
// An endpoint's row says since when it has been failing; [TakeFailing] returns once
// the endpoints whose owners must be notified that they keep failing. Options can switch
// an endpoint off after days of failures only, or at 410 Gone; both are off by
// default.
//
// # Isolation
//
// Each endpoint has a worker with its own limit of calls in flight: small at first,
// larger while responses are quick, and small again at the first failure. Quick
// endpoints, endpoints that were not called yet and slow ones have separate pools of
// call slots, so that any number of hanging endpoints leaves the others their slots.
// Due deliveries are fetched for each endpoint only as far as its worker has room, by
// an index that starts at its company.
package webhooks
