// Package stories tests Intumwa as a whole, from outside. Each story starts the
// gateway as a process, calls its HTTP API as a customer, simulates the carriers
// and the customers' webhook endpoints, and checks PostgreSQL at the end. It
// imports nothing of the product, so it tests the shipped binary.
//
// An example:
//
//	w := play(t, scene{})                     // one carrier, one gateway
//	shop := w.company("Isoko", 1000)          // approved, with credits, sender, token and webhook
//	answer := shop.sends(w.number(), "Amahoro")
//	w.becomes(answer.ID, "sent")
//
// Every world ends with the same checks: the ledger balances, no carrier saw a
// protocol error, the gateway ended cleanly, and no log contains a text, token,
// secret or whole phone number; in make test-all the race detector found nothing.
//
// `make test` runs the shortest stories once each; `make test-all` runs all, with
// many more faults. INTUMWA_STORIES_BINARY names a built gateway to test. With -artifacts
// the configurations and logs of every gateway are kept.
package stories
