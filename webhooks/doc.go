// Package webhooks tells customers what became of their messages: signed, with
// retries, isolated from each other (rule api 6).
//
// # The promise
//
// A final message of a company with an active endpoint has exactly one row in
// webhook_deliveries, written by [Webhooks.Enqueue] in the transaction that
// settles the message: either both exist or neither. The row holds the body as
// bytes; every attempt and every re-send sends these bytes under the same
// webhook-id. Delivery is at least once: a receiver drops what it has seen by
// webhook-id, or by message_id and event.
//
// # An attempt
//
// A worker takes a delivery by writing leased_until, ahead of the call. Success
// is an answer with a 2xx status within the timeout; anything else is a
// failure, a redirect too. The status decides: what goes wrong while the rest
// of the answer is read changes nothing. After a failure the next attempt is
// due one delay of the schedule later, counted from the failure; after the last
// one the delivery is exhausted: kept, visible, and sent again only by
// [Webhooks.Resend]. Every attempt is kept.
//
// # When something breaks
//
//   - The process dies between taking and storing: the lease runs out and
//     whoever runs takes the delivery again. The lost attempt is not counted.
//   - The process stops in order: it takes nothing more, gives the calls under
//     way a bounded time, stores their results, and hands back the leases of
//     the rest.
//   - Postgres is away: results wait in memory, calls stop when too many do; a
//     delivery whose lease ran out meanwhile is not called any more.
//   - Two processes run: a row is locked by one claim and skipped by the other
//     (FOR UPDATE SKIP LOCKED). A late result of an expired lease is recorded
//     as an attempt but does not undo what the newer holder stored; a success
//     always counts.
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
// Since when an endpoint has been failing stands with it; [TellFailing] answers
// once whose owners are to be told that it fails for good. Options switch one off
// after days of nothing but failures, or at 410 Gone; neither is on by itself.
//
// # One slow endpoint and the others
//
// Each endpoint has its own limit of calls in flight, small at first, larger
// while it answers quickly, and small again at the first failure. Endpoints
// that answer quickly, those not yet known and those that are slow draw on
// separate pools of call slots, so any number of hanging endpoints cannot take
// what the others live on. Claims ask for each endpoint only for what it has
// room for, and never read through one endpoint's backlog to find another's.
package webhooks
