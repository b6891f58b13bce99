// Package webhooks tells customers what became of their messages: signed, with
// retries, isolated from each other (rule api 6).
//
// # The promise
//
// A final message of a company with an active endpoint has exactly one row in
// webhook_deliveries, written by [Webhooks.Enqueue] in the transaction that
// settles the message: either both exist or neither. The row is never written
// again; the body is a pure function of it, so every attempt and every re-send
// sends the same octets under the same webhook-id. Delivery is at least once: a
// receiver drops what it has seen by webhook-id, or by message_id and event.
//
// # An attempt
//
// Success is an answer with a 2xx status within the timeout; anything else is a
// failure, a redirect too. The status decides: what goes wrong while the rest of
// the answer is read changes nothing. Every attempt is a row in
// webhook_attempts, written once. After a failure the delivery gets a row in
// webhook_undelivered, due one delay of the schedule after the failure; after
// the last failure that row stays, due never: the delivery is kept, visible, and
// sent again only by [Webhooks.Resend] and [Webhooks.Recover]. Success deletes
// the row. What is older than Options.Retention leaves with all of its rows.
//
// # Who delivers
//
// Of all processes that run [Webhooks.Run] one delivers, the one that holds an
// advisory lock on a connection of its own ([tenure]); the others stand by. What
// is in hand is known to its memory alone, so nothing is leased, and what is
// delivered at once costs two rows. New deliveries are read in the order of their
// numbers, each once ([arrivals]); what does not fit into memory, or waits long
// there, is parked in webhook_undelivered, and fetched again, company by company,
// when there is room. How far everything is done is stored once a second, so that
// whoever takes over reads little again. The decision and its figures are in
// docs/decisions/0001-webhook-deliveries.md.
//
// # When something breaks
//
//   - The process dies: its lock falls with its connection, and another takes
//     over within a second. What was in flight, or not recorded yet, is called
//     again; the lost attempt is not counted.
//   - The process is frozen: after ten seconds without a beat whoever stands by
//     cuts its connection. When it wakes it begins no call, and what it had in
//     flight is not recorded: each recording names the epoch of its tenure.
//   - The process stops in order: it takes nothing more, gives the calls in
//     flight a bounded time, stores their results, and lets go of the lock.
//   - Postgres is away: results wait in memory and no call is begun. When it is
//     back and nobody else took over, all that was in hand still is.
//   - An endpoint is changed: pending deliveries go to the new URL, signed with
//     the new secret. It is deactivated: its pending deliveries wait, their
//     attempts untouched, until it is active again. Messages that become final
//     meanwhile emit nothing (rule api 6). Whoever changed it, other processes
//     obey as soon as they hear of it ([Webhooks.EndpointChanged]).
//
// # What hands do
//
// [Webhooks.Deliveries] lists, [Webhooks.Resend] sends one again,
// [Webhooks.Recover] everything that was given up since a time: in batches, by
// whoever runs [Webhooks.Run], with its progress in a row. [Webhooks.Rotate]
// changes the secret so that for a day both are valid. [Webhooks.Test] shows what
// an endpoint answers and records nothing. They take the company as an
// [sms.CompanyID]: what is another's is not found.
//
// Since when an endpoint has been failing stands with it; [TakeFailing] answers
// once whose owners are to be told that it fails for good. Options switch one off
// after days of nothing but failures, or at 410 Gone; neither is on by itself.
//
// # One slow endpoint and the others
//
// Each endpoint has a worker with its own limit of calls in flight, small at
// first, larger while it answers quickly, and small again at the first failure.
// Endpoints that answer quickly, those not yet known and those that are slow draw
// on separate pools of call slots, so any number of hanging endpoints cannot take
// what the others live on. Due deliveries are fetched for each endpoint only as
// far as it has room, and nobody reads through one endpoint's backlog to find
// another's.
package webhooks
