// Package stories tests Intumwa as a whole, from outside: each story starts the
// gateway as a process of its own, speaks HTTP to it as a customer does, plays
// the carriers and the customers' webhook endpoints, and looks at PostgreSQL
// when it is over. Nothing of the product is imported; what is said here holds
// for the binary that is shipped.
//
// A story reads like this:
//
//	w := play(t, scene{})                     // one carrier, one gateway
//	shop := w.company("Isoko", 1000)          // approved, with credits, sender, token and webhook
//	answer := shop.sends(w.number(), "Amahoro")
//	w.becomes(answer.ID, "sent")
//
// Whatever the story is about, every world ends with the same questions: do the
// books balance, did any carrier see the protocol broken, did the gateway end
// in good order, did the race detector speak, and is any text, token, secret or
// whole phone number in a log.
//
// `make test` plays the shortest of them, once each; `make test-all` plays all, and
// breaks things many times over. INTUMWA_STORIES_BINARY names a gateway that is built already. With -artifacts
// the configurations and logs of every gateway are kept.
package stories
