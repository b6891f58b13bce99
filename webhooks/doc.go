// Package webhooks sends events about final messages to customers: signed, with
// retries, isolated from each other (rule api 6).
//
// # Guarantees
//
// A final message of a company with an active endpoint has exactly one row in
// webhook_deliveries, written by [Webhooks.Enqueue] in the transaction that
// settles the message: either both exist or neither. The body is a pure function of
// columns that are never written again, so every attempt and every re-send
// sends the same bytes under the same webhook-id. Delivery is at least once: a
// receiver drops what it has seen by webhook-id, or by message_id and event.
//
// # Events on request
//
// An event that is not about a message of the company goes only to an endpoint that requested
// it ([Askable], [Endpoint.Events]). Its row holds the body's data. Its number is drawn from the
// sequence of messages, so that one order lists all.
//
// # An attempt
//
// Success is a response with a 2xx status within the timeout; anything else is a
// failure, a redirect too. The status decides: an error while the rest of the
// response is read changes nothing. The row has every attempt. Until one succeeds the row is
// in the partition webhook_undelivered: called or due at once, after a failure
// due after the next delay of the schedule, after the last failure never due.
// The delivery is then kept, visible, and sent again only by [Webhooks.Resend] and
// [Webhooks.Recover]. The statement that records a success moves the row to webhook_delivered. A
// delivery older than Options.Retention is deleted.
//
// # Claims
//
// Any number of processes run [Webhooks.Run]. Each claims rows that are due: one
// statement for all endpoints for which the process has room writes until when the claim
// lasts. That time is also the claim's name: a result is recorded only while the row has
// it, so it is recorded once, and not after another process has claimed the row.
//
// Most first attempts need no claim of their own. While Run of the process has room for a quick
// endpoint, Enqueue records the event as claimed, and the call begins after the COMMIT. Such
// a row has no due time: a look for claims that ended gives it one, if its process died.
//
// An event is posted only after its claim is committed. That COMMIT is the event's own or comes
// after it in the log, and it waits for the synchronous standby, if there is one; so no
// endpoint gets an event that a failover can take back. A claim whose COMMIT got no answer
// is not used.
//
// A kick makes the process look at all active endpoints for what became due in the last
// seconds, an index probe an endpoint. It looks every Options.Idle without a kick, and every 20
// times that for everything that is due. The bound of the frequent look matters while an old
// snapshot, of a backup for example, keeps deleted rows: each look passes those that are younger
// than the bound. docs/decisions.md has the figures.
//
// # Failures
//
//   - A process dies: its claims end by their time, 20 s and the timeout of a call after
//     they began, and other processes call. Calls whose result was not stored are
//     repeated; the lost attempt is not counted.
//   - A process freezes: when it wakes it starts no call whose claim could end before
//     the call does, and the results of claims that ended are not stored.
//   - A process shuts down: it claims nothing, gives back what it has not called, gives the calls
//     in flight a limited time, and stores their results. A call that it cuts is repeated.
//   - PostgreSQL is away: results wait in memory, and too many of them stop further calls.
//   - PostgreSQL's clock is set: ahead, claims end early and calls in flight may be made
//     twice; back, what waits is due by as much later.
//   - An endpoint changes: pending deliveries go to the new URL, signed with the new
//     secret, because each claim reads the endpoint. At the notice of the change a process gives
//     back what it has claimed and not called, and looks for what waits
//     ([Webhooks.EndpointChanged]). It is deactivated: its pending
//     deliveries wait, their attempts untouched, until it is active again; messages that
//     become final meanwhile emit nothing (rule api 6).
//
// # Operations
//
// [Webhooks.Deliveries] lists, [Webhooks.Resend] sends one again, [Webhooks.Recover]
// everything that was given up since a time. [Webhooks.Rotate]
// changes the secret so that for a day both are valid. [Webhooks.Test] calls an
// endpoint once, returns its response and records nothing. They take the company as
// an [sms.CompanyID]: another company's delivery is not found. An endpoint's row has since
// when it has been failing; [TakeFailing] returns once the endpoints whose owners must be
// notified that they keep failing.
//
// # Isolation
//
// In each process an endpoint has a limit of calls in flight: small at first, larger
// while responses are quick, and small again at the first failure. Endpoints whose last call
// was slow share half of all calls, so that any number of hanging endpoints leaves the others
// half; each is known as slow after its first call. A quick endpoint has up to eight deliveries
// waiting for each call, and gets more only while the process has a call left; so endpoints with
// backlogs take turns. New events are handed over only while no older ones wait for the endpoint.
// Claims use an index that starts at the company.
package webhooks
