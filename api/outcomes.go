package api

import (
	"intumwa/dispatcher/setup"
	"intumwa/messages"
	"intumwa/messages/submission"
	"intumwa/sms"
)

// outcome is a status with its reason: a row of the page /docs/statuses.
type outcome struct {
	status  sms.Status
	reason  string // failure_reason, or an example of a carrier's; "" without one
	meaning words
}

// outcomes are all of them. A reason of our own that is missing here fails a test.
var outcomes = []outcome{
	{sms.Pending, "", words{"We have the message, or a carrier has it. The outcome is not known yet.",
		"Le message est chez nous ou chez un opérateur. Le résultat n’est pas encore connu."}},
	{sms.Sent, "", words{"Delivered, if the carrier sends delivery receipts. A carrier without receipts only confirms " +
		"that it accepted the message.",
		"Remis au téléphone, si l’opérateur envoie des accusés de réception. Un opérateur qui n’en envoie pas confirme " +
			"seulement qu’il a accepté le message."}},
	{sms.Failed, submission.ReasonExpired, words{"Its validity ended before a carrier accepted it.",
		"Sa validité a expiré avant qu’un opérateur ne l’accepte."}},
	{sms.Failed, submission.ReasonOptedOut, words{"The recipient opted out after you sent it and before a carrier had it.",
		"Le destinataire s’est désinscrit après votre envoi, avant qu’un opérateur n’ait le message."}},
	{sms.Failed, submission.ReasonClosed, words{"Its carrier has closed, and no other can take it: none serves the " +
		"number, or the sender is not registered there.", "Son opérateur a fermé et aucun autre ne peut le prendre : aucun " +
		"ne dessert le numéro, ou l’expéditeur n’y est pas enregistré."}},
	{sms.Failed, messages.ReasonCancelled, words{"It was cancelled, by you or by us, before it reached a carrier.",
		"Il a été annulé, par vous ou par nous, avant d’atteindre un opérateur."}},
	{sms.Failed, submission.ReasonNoReceipt, words{"A carrier accepted it, but never reported the outcome. It may " +
		"have arrived.", "Un opérateur l’a accepté, mais n’a jamais annoncé de résultat. Il est peut-être arrivé."}},
	{sms.Failed, submission.ReasonNoAnswer, words{"A carrier may have it: it did not answer, and this installation does " +
		"not send twice.", "Un opérateur l’a peut-être reçu : il n’a pas répondu, et cette installation n’envoie " +
		"jamais deux fois."}},
	{sms.Failed, "UNDELIV 001", words{"A carrier accepted it, then reported that it could not be delivered.",
		"Un opérateur l’a accepté, puis a annoncé qu’il ne pouvait pas le remettre."}},
	{sms.Failed, "ESME_RINVDSTADR", words{"A carrier refused it.", "Un opérateur l’a refusé."}},
	{sms.Failed, "smpp: …", words{"The carriers’ protocol cannot carry it.",
		"Le protocole des opérateurs ne permet pas de le transmettre."}},
}

// What becomes of the credits.
var (
	creditsTaken    = words{"Charged when the request is accepted.", "Prélevés quand la requête est acceptée."}
	creditsKept     = words{"Charged.", "Prélevés."}
	creditsReturned = words{"Returned.", "Remboursés."}
	creditsMostly   = words{"Returned, unless a carrier had already received one of its segments.",
		"Remboursés, sauf si un opérateur avait déjà reçu l’un de ses segments."}
)

// credits returns what becomes of the message's credits under the installation's rule.
func (o outcome) credits(rule setup.Refund) words {
	failed := messages.Settled{Status: sms.Failed, Reason: o.reason}
	switch unsubmitted := (messages.Settled{Status: sms.Failed, Reason: o.reason, Unsubmitted: true}); {
	case o.status == sms.Pending:
		return creditsTaken
	case o.status == sms.Sent:
		return creditsKept
	case o.reason == messages.ReasonCancelled, rule.Pays(failed): // no carrier had a cancelled one
		return creditsReturned
	case rule.Pays(unsubmitted):
		return creditsMostly
	}
	return creditsKept
}

// outcomeRow is an outcome in a language.
type outcomeRow struct{ Status, Reason, Meaning, Credits string }

func outcomeRows(rule setup.Refund, language string) (rows []outcomeRow) {
	for _, o := range outcomes {
		rows = append(rows, outcomeRow{o.status.String(), o.reason, o.meaning.of(language), o.credits(rule).of(language)})
	}
	return rows
}
