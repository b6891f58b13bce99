package api

import (
	"strings"

	"intumwa/intake"
	"intumwa/sms"
)

// refusal is one reason for refusing a request: everything that the handlers, the
// OpenAPI document and the reference page say about it. There is no other list.
type refusal struct {
	status int
	code   string     // of X-Error-Code: published, never changed; "" where it cannot be the first problem
	text   string     // N and K are placeholders
	field  string     // of a 422: the path in errors, "" when there is none; N and K as in text
	on     operations // that can return it
	retry  retry
	cause  words
	fix    words
}

// words is a sentence in the languages of the page.
type words struct{ en, fr string }

// operations are operationIds of the document, separated by spaces.
type operations string

const (
	onSends   operations = "sendSms sendBulk sendTemplate"
	onBatches operations = "sendBulk sendTemplate"
	onBodies             = onSends + " previewSms putTestNumber verifyTestNumber addOptOuts"
	onLists   operations = "listSms listBatchMessages listWebhookDeliveries listInbound listOptOuts"
	onCancels operations = "cancelSms cancelBatch cancelBatchByID"
	onNamed              = "getSms getBatch listBatchMessages getWebhookDelivery resendWebhookDelivery getInbound removeOptOut " + onCancels
	onAsked              = onLists + " getSms getBatch getBalance getTestNumber getWebhookDelivery getInbound removeOptOut " + onCancels
	onLooks              = onAsked + " resendWebhookDelivery addOptOuts"
	onAll                = onBodies + " " + onAsked + " resendWebhookDelivery"
)

// retry says whether the client may send the same request again.
type retry int

const (
	retryNo retry = iota
	retryFixed
	retryLater
	retryAtOnce
)

func (r retry) words() words {
	return [...]words{
		{"no", "non"}, {"after the fix", "une fois corrigé"}, {"yes, after Retry-After", "oui, après Retry-After"},
		{"yes, in a moment", "oui, dans un instant"},
	}[r]
}

// refusals are all of them, in the order in which they stand below.
var refusals []*refusal

func newRefusal(status int, code, text string, on operations, again retry, cause, fix words) *refusal {
	r := &refusal{status: status, code: code, text: text, on: on, retry: again, cause: cause, fix: fix}
	refusals = append(refusals, r)
	return r
}

// newInvalid is a refusal of a field.
func newInvalid(code, field, text string, on operations, cause, fix words) *refusal {
	r := newRefusal(422, code, text, on, retryNo, cause, fix)
	r.field = field
	return r
}

// newInvalidItem is a refusal of a field of a batch, whose text names the field:
// "The <field>" and end.
func newInvalidItem(code, field, end string, on operations, cause, fix words) *refusal {
	return newInvalid(code, field, "The "+field+end, on, cause, fix)
}

// end returns the text behind the name of the field.
func (r *refusal) end() string { return r.text[len("The ")+len(r.field):] }

// inBatch reports whether the operation responds to a failing field with textInvalid
// as its message.
func inBatch(operation string) bool { return strings.Contains(string(onBatches), operation) }

// refusalOfRule describes the refusal of a business rule; its text comes from intake.
// Several codes may share one reason (a metrics label); codeOf returns the first.
func refusalOfRule(code string, rule sms.Refusal, on operations, again retry, cause, fix words) *refusal {
	r := newRefusal(400, code, rule.Text, on, again, cause, fix)
	if codes[rule.Reason] == "" {
		codes[rule.Reason] = code
	}
	return r
}

// codes has the codes of the business rules, by reason.
var codes = map[string]string{}

// codeOf returns the code of a business rule.
func codeOf(rule sms.Refusal) string {
	if code, known := codes[rule.Reason]; known {
		return code
	}
	return rule.Reason
}

// The texts, codes and explanations.
var (
	// 400: the business rules (rule api 7.2); the texts come from intake.

	_ = refusalOfRule("no_company", intake.RefuseNoCompany, onAll, retryFixed,
		words{"The user of the token has no company.", "L’utilisateur du jeton n’a pas d’entreprise."},
		words{"Create one in the dashboard.", "Créez-en une dans le tableau de bord."})
	_ = refusalOfRule("test_sender", intake.RefuseTestSender(documentedTestSender), onBatches, retryNo,
		words{"Test mode is for single messages.", "Le mode test ne vaut que pour les messages isolés."},
		words{"POST /v1/sms, or an approved sender.", "POST /v1/sms, ou un expéditeur approuvé."})
	_ = refusalOfRule("company_not_approved", intake.RefuseNotApproved, onSends, retryFixed,
		words{"An administrator has not approved the company yet.", "Un administrateur n’a pas encore approuvé l’entreprise."},
		words{"Wait for the approval; meanwhile use the test mode.", "Attendez l’approbation ; en attendant, utilisez le mode test."})
	_ = refusalOfRule("company_not_verified", intake.RefuseNotVerified, onBatches, retryFixed,
		words{"Bulk and template sends need a verified company.", "Les envois groupés et par modèle exigent une entreprise vérifiée."},
		words{"Have it verified; single sends work already.", "Faites-la vérifier ; les envois isolés marchent déjà."})
	_ = refusalOfRule("sender_not_found", intake.RefuseSenderUnknown, onSends+" addOptOuts", retryFixed,
		words{"The company has no such sender; its case counts.", "L’entreprise n’a pas cet expéditeur ; la casse compte."},
		words{"Register the sender in the dashboard.", "Enregistrez l’expéditeur dans le tableau de bord."})
	_ = refusalOfRule("sender_not_approved", intake.RefuseSenderUnready, onSends, retryFixed,
		words{"The sender waits for its approval.", "L’expéditeur attend son approbation."},
		words{"Wait for it, or use another sender.", "Attendez-la, ou prenez un autre expéditeur."})
	_ = refusalOfRule("country_mismatch", intake.RefuseCountry("BI", "K"), onBatches, retryNo,
		words{"The sender belongs to operators of another country.", "L’expéditeur relève d’opérateurs d’un autre pays."},
		words{"Use a sender of the recipients' country.", "Prenez un expéditeur du pays des destinataires."})
	_ = refusalOfRule("opted_out", intake.RefuseOptedOut, "sendSms", retryNo,
		words{"The recipient wants no messages from this sender: by STOP, or by your own entry.", "Le destinataire ne veut plus de messages de cet expéditeur : par STOP, ou par votre propre inscription."},
		words{"Do not send to it. START, or DELETE /v1/opt-outs/{phone_number}, takes it off the list.", "Ne lui envoyez rien. START, ou DELETE /v1/opt-outs/{phone_number}, le retire de la liste."})
	_ = refusalOfRule("opted_out", intake.RefuseRecipientsOptedOut("N"), onBatches, retryNo,
		words{"The same, in a batch. Recipients are counted from 1; several are named together.", "De même, dans un lot. Les destinataires sont comptés à partir de 1 ; plusieurs sont nommés ensemble."},
		words{"Leave them out.", "Retirez-les."})
	optOutsFull = newRefusal(400, "opt_outs_full", "The opt-out list is full.", "addOptOuts", retryFixed,
		words{"The list has 1,000,000 entries. Those that handsets make by STOP are always entered.", "La liste a 1 000 000 d’entrées. Celles que les téléphones font par STOP sont toujours inscrites."},
		words{"Remove entries.", "Retirez des entrées."})
	_ = refusalOfRule("no_carrier", intake.RefuseNoCarrier, "sendSms putTestNumber", retryNo,
		words{"The number is valid and no carrier takes it.", "Le numéro est valide, mais aucun opérateur ne le prend."},
		words{"Try another number of the recipient.", "Essayez un autre numéro du destinataire."})
	_ = refusalOfRule("no_carrier", intake.RefuseRecipientCarrier("N"), onBatches, retryNo,
		words{"The same, in a batch. Recipients are counted from 1.", "De même, dans un lot. Les destinataires sont comptés à partir de 1."},
		words{"Leave the recipient out.", "Retirez ce destinataire."})
	_ = refusalOfRule("missing_variables", intake.RefuseVariables("N", []string{"K"}), "sendTemplate previewSms", retryNo,
		words{"The first recipient that lacks values, and which.", "Le premier destinataire à qui il manque des valeurs, et lesquelles."},
		words{"Give every placeholder a value; null is one.", "Donnez une valeur à chaque champ ; null en est une."})
	_ = refusalOfRule("message_empty", intake.RefuseRecipientEmpty("N"), "sendTemplate previewSms", retryNo,
		words{"The template renders to nothing for them.", "Pour lui, le modèle ne donne aucun texte."},
		words{"Leave the recipient out, or give a value.", "Retirez ce destinataire, ou donnez une valeur."})
	_ = refusalOfRule("too_many_segments", intake.RefuseRecipientLong("N"), "sendTemplate previewSms", retryNo,
		words{"The rendered text has more than 255 segments.", "Le texte obtenu dépasse 255 segments."},
		words{"Shorten the values.", "Raccourcissez les valeurs."})
	_ = refusalOfRule("too_many_segments", intake.RefuseTooLong, "sendSms", retryNo,
		words{"The text has more segments than this installation allows.", "Le texte a plus de segments que cette installation n’en permet."},
		words{"Shorten it.", "Raccourcissez-le."})
	_ = refusalOfRule("insufficient_credits", intake.RefuseCredits("message", "N"), "sendSms", retryFixed,
		words{"The balance is below the cost. Nothing was charged.", "Le solde est inférieur au coût. Rien n’a été débité."},
		words{"Buy credits.", "Achetez des crédits."})
	_ = refusalOfRule("insufficient_credits", intake.RefuseCredits("batch", "N"), onBatches, retryFixed,
		words{"The same, for a whole batch. Nothing was queued.", "De même, pour tout un lot. Rien n’a été mis en file."},
		words{"Buy credits, or send a part.", "Achetez des crédits, ou envoyez une partie."})
	_ = refusalOfRule("repeated_too_soon", intake.RefuseTooSoon("", "N seconds"), "sendSms", retryNo,
		words{"A limit of this installation or company, off unless set: the text went to the number a moment ago.", "Une limite de cette installation ou entreprise, absente sauf réglage : ce texte est parti à ce numéro il y a un instant."},
		words{"Do not send it twice; repeat a request with its Idempotency-Key.", "Ne l’envoyez pas deux fois ; répétez une requête avec sa Idempotency-Key."})
	_ = refusalOfRule("repeated_too_soon", intake.RefuseTooSoon("N", "N seconds"), onBatches, retryNo,
		words{"The same, in a batch, of which an earlier recipient may be the first. Nothing was queued.", "De même, dans un lot, dont un destinataire précédent peut être le premier. Rien n’a été mis en file."},
		words{"Leave the recipient out.", "Retirez ce destinataire."})
	_ = refusalOfRule("repeated_too_often", intake.RefuseRepeats("", "N"), "sendSms", retryNo,
		words{"A limit, off unless set: the number got this text as often as it may today.", "Une limite, absente sauf réglage : ce numéro a reçu ce texte autant de fois que permis aujourd’hui."},
		words{"Send it tomorrow.", "Envoyez-le demain."})
	_ = refusalOfRule("repeated_too_often", intake.RefuseRepeats("N", "N"), onBatches, retryNo,
		words{"The same, in a batch.", "De même, dans un lot."},
		words{"Leave the recipient out.", "Retirez ce destinataire."})
	_ = refusalOfRule("number_limit", intake.RefuseNumber("", "N"), "sendSms", retryNo,
		words{"A limit, off unless set: the number got as many of your messages as it may today.", "Une limite, absente sauf réglage : ce numéro a reçu autant de vos messages que permis aujourd’hui."},
		words{"Send it tomorrow.", "Envoyez-le demain."})
	_ = refusalOfRule("number_limit", intake.RefuseNumber("N", "N"), onBatches, retryNo,
		words{"The same, in a batch.", "De même, dans un lot."},
		words{"Leave the recipient out.", "Retirez ce destinataire."})
	_ = refusalOfRule("daily_cap", intake.RefuseDailyCap("message", "N", "N", "N"), "sendSms", retryNo,
		words{"A limit, off unless set, of the credits that the company may spend today. Nothing was charged.", "Une limite, absente sauf réglage, des crédits que l’entreprise peut dépenser aujourd’hui. Rien n’a été débité."},
		words{"Send it tomorrow, or ask us for a higher limit.", "Envoyez-le demain, ou demandez-nous une limite plus haute."})
	_ = refusalOfRule("daily_cap", intake.RefuseDailyCap("batch", "N", "N", "N"), onBatches, retryNo,
		words{"The same, for a whole batch. Nothing was queued.", "De même, pour tout un lot. Rien n’a été mis en file."},
		words{"Send a part, or ask us for a higher limit.", "Envoyez-en une partie, ou demandez-nous une limite plus haute."})
	_ = refusalOfRule("quiet_hours", intake.RefuseQuiet, onBatches, retryNo,
		words{"The batch would wait for the end of the quiet hours, and expire_at is before that.", "Le lot attendrait la fin des heures calmes, et expire_at est avant."},
		words{"A later expire_at, or single messages.", "Un expire_at plus tardif, ou des messages isolés."})
	_ = refusalOfRule("no_test_number", intake.RefuseNoTestNumber, "sendSms", retryFixed,
		words{"Test mode has no verified number.", "Le mode test n’a pas de numéro vérifié."},
		words{"PUT /v1/test-number, then verify.", "PUT /v1/test-number, puis vérifiez."})
	_ = refusalOfRule("other_test_number", intake.RefuseOtherTestNumber, "sendSms", retryNo,
		words{"Another recipient in test mode.", "Un autre destinataire en mode test."},
		words{"Send to the test number.", "Envoyez au numéro de test."})
	_ = refusalOfRule("test_quota", intake.RefuseTestQuota, "sendSms", retryNo,
		words{"The pool of test segments is used up. Failed ones come back.", "La réserve de segments de test est épuisée. Ceux des messages échoués reviennent."},
		words{"Go live.", "Passez en production."})
	_ = refusalOfRule("sandbox_quota", intake.RefuseSandboxQuota, "sendSms", retryNo,
		words{"1,000 messages to numbers of the sandbox within 24 hours.", "1 000 messages aux numéros du bac à sable en 24 heures."},
		words{"Come again tomorrow.", "Revenez demain."})

	// 400: the test number.

	verifiedAlready = newRefusal(400, "test_number_verified", "This number is already your verified test number.", "putTestNumber", retryNo,
		words{"There is nothing to do.", "Il n’y a rien à faire."},
		words{"–", "–"})
	noReplacements = newRefusal(400, "test_number_final", "The test number cannot be replaced any more.", "putTestNumber", retryNo,
		words{"It was replaced as often as it may be.", "Il a été remplacé autant de fois que permis."},
		words{"Keep the number; go live.", "Gardez le numéro ; passez en production."})
	codeWrong = newRefusal(400, "code_wrong", "The code is not right.", "verifyTestNumber", retryNo,
		words{"Another code than the last that was sent.", "Un autre code que le dernier envoyé."},
		words{"Type it again; five tries.", "Retapez-le ; cinq essais."})
	codeNone = newRefusal(400, "code_none", "There is no code to confirm. Ask for a new one.", "verifyTestNumber", retryNo,
		words{"None was sent, or it was used.", "Aucun n’a été envoyé, ou il a servi."},
		words{"PUT /v1/test-number.", "PUT /v1/test-number."})
	codeExpired = newRefusal(400, "code_expired", "The code has expired. Ask for a new one.", "verifyTestNumber", retryNo,
		words{"It is over 10 minutes old.", "Il a plus de 10 minutes."},
		words{"PUT /v1/test-number.", "PUT /v1/test-number."})
	codeTries = newRefusal(400, "code_tries", "The code was mistyped too often. Ask for a new one.", "verifyTestNumber", retryNo,
		words{"Five wrong tries.", "Cinq essais manqués."},
		words{"PUT /v1/test-number.", "PUT /v1/test-number."})

	// What is wrong with the request itself.

	malformedJSON = newRefusal(400, "malformed_json", "The request body is not valid JSON.", onBodies, retryNo,
		words{"A syntax error, invalid UTF-8, half a surrogate pair, or nested too deep.", "Une faute de syntaxe, de l’UTF-8 invalide, une demi-paire de substitution, ou trop de niveaux."},
		words{"Encode the body with a JSON library.", "Faites écrire le corps par une bibliothèque JSON."})
	keyInvalid = newRefusal(400, "idempotency_key_invalid", "The Idempotency-Key header is not valid.", onSends, retryNo,
		words{"It is not 1 to 255 visible ASCII characters, or there are two.", "Elle n’a pas de 1 à 255 caractères ASCII visibles, ou il y en a deux."},
		words{"A UUID will do.", "Un UUID convient."})
	ambiguousRequest = newRefusal(400, "ambiguous_request", "The request can be read in two ways.", "", retryNo,
		words{"Its length is said twice or in two ways; the connection is closed.", "Sa longueur est dite deux fois ou de deux façons ; la connexion est fermée."},
		words{"Leave the framing to your HTTP library.", "Laissez votre bibliothèque HTTP s’en charger."})
	unauthenticatedCaller = newRefusal(401, "unauthenticated", "Unauthenticated.", onAll, retryFixed,
		words{"No token, or one that is mistyped or revoked.", "Pas de jeton, ou un jeton mal écrit ou révoqué."},
		words{"Authorization: Bearer <API_TOKEN>.", "Authorization: Bearer <API_TOKEN>."})
	notFound = newRefusal(404, "not_found", "Not found.", onNamed, retryNo,
		words{"No such path, message, batch or delivery, or it is another company's.", "Ce chemin, message, lot ou événement n’existe pas, ou est à une autre entreprise."},
		words{"Check the address.", "Vérifiez l’adresse."})
	wrongMethod = newRefusal(405, "method_not_allowed", "Method not allowed.", "", retryNo,
		words{"The path takes other methods.", "Le chemin prend d’autres méthodes."},
		words{"See the Allow header.", "Voyez l’en-tête Allow."})
	tooSlow = newRefusal(408, "body_too_slow", "The request body took too long to arrive.", onBodies, retryAtOnce,
		words{"The connection is too slow, or it broke.", "La connexion est trop lente, ou s’est rompue."},
		words{"Send smaller batches.", "Envoyez des lots plus petits."})
	keyInUse = newRefusal(409, "idempotency_key_in_use", "A request with this idempotency key is still being processed.", onSends, retryAtOnce,
		words{"The first request has not been answered yet.", "La première requête n’a pas encore sa réponse."},
		words{"Wait a moment and repeat it.", "Attendez un instant et répétez-la."})
	tooLarge = newRefusal(413, "body_too_large", "The request body is too large.", onBodies, retryNo,
		words{"It is over 16 MiB.", "Il dépasse 16 Mio."},
		words{"At most 500 recipients a request.", "Au plus 500 destinataires par requête."})
	notJSON = newRefusal(415, "content_type_invalid", "The Content-Type must be application/json.", onBodies, retryNo,
		words{"The body is declared as something else.", "Le corps est déclaré comme autre chose."},
		words{"Content-Type: application/json.", "Content-Type: application/json."})

	// 422: single messages, previews, the test number (rule api 7.1).

	numberRequired = newInvalid("phone_number_required", "phone_number", "The phone number is required.", "sendSms putTestNumber addOptOuts",
		words{"phone_number is missing, null or blank.", "phone_number manque, est null ou vide."},
		words{"Give one.", "Donnez-en un."})
	numberInvalid = newInvalid("phone_number_invalid", "phone_number", "The phone number must be a valid Burundi (+257) number.", "sendSms putTestNumber listSms listBatchMessages addOptOuts listInbound listOptOuts removeOptOut",
		words{"It is no Burundi mobile number.", "Ce n’est pas un numéro mobile du Burundi."},
		words{"+257 and 8 digits, or 8 digits.", "+257 et 8 chiffres, ou 8 chiffres."})
	senderRequired = newInvalid("sender_required", "sender", "The sender is required.", "sendSms",
		words{"sender is missing, null or blank.", "sender manque, est null ou vide."},
		words{"Give one.", "Donnez-en un."})
	senderInvalid = newInvalid("sender_invalid", "sender", "The sender must be 1-11 alphanumeric characters.", onSends+" addOptOuts listOptOuts removeOptOut",
		words{"Other characters, spaces, or too long.", "D’autres caractères, des espaces, ou trop long."},
		words{"ASCII letters and digits only.", "Des lettres et chiffres ASCII seulement."})
	messageRequired = newInvalid("message_required", "message", "The message content is required.", "sendSms previewSms",
		words{"message is missing, null, blank or no string.", "message manque, est null, vide ou n’est pas une chaîne."},
		words{"Give one.", "Donnez-en un."})
	messageLong = newInvalid("message_too_long", "message", "The message must not exceed 600 characters.", "sendSms previewSms",
		words{"Unicode code points are counted.", "Les points de code Unicode sont comptés."},
		words{"Shorten it, or send two.", "Raccourcissez-le, ou envoyez-en deux."})
	referenceInvalid = newInvalid("client_reference_invalid", "client_reference", "The client_reference must be at most 64 printable characters.", "sendSms listSms",
		words{"It is no string, too long, or has control characters.", "Ce n’est pas une chaîne, elle est trop longue, ou a des caractères de contrôle."},
		words{"1 to 64 printable characters; leave it out for none.", "De 1 à 64 caractères imprimables ; omettez-la s’il n’y en a pas."})
	sendAtInvalid = newInvalid("send_at_invalid", "send_at", "The send_at must be a date and time such as 2026-03-01T10:00:00+02:00.", onSends,
		words{"Not a time of RFC 3339, or without its offset.", "Pas une date RFC 3339, ou sans son décalage."},
		words{"RFC 3339 with an offset.", "RFC 3339 avec un décalage."})
	sendAtPast = newInvalid("send_at_past", "send_at", "The send_at must not be in the past.", onSends,
		words{"It is over a minute ago.", "Elle est passée depuis plus d’une minute."},
		words{"Leave it out to send at once.", "Omettez-la pour envoyer tout de suite."})
	sendAtFar = newInvalid("send_at_too_far", "send_at", "The send_at must be at most 30 days ahead.", onSends,
		words{"Too far in the future.", "Trop loin dans l’avenir."},
		words{"Send the request later.", "Envoyez la requête plus tard."})
	expireAtInvalid = newInvalid("expire_at_invalid", "expire_at", "The expire_at must be a date and time such as 2026-03-01T10:00:00+02:00.", onSends,
		words{"Not a time of RFC 3339, or without its offset.", "Pas une date RFC 3339, ou sans son décalage."},
		words{"RFC 3339 with an offset.", "RFC 3339 avec un décalage."})
	expireAtEarly = newInvalid("expire_at_too_early", "expire_at", "The expire_at must be after the time of sending.", onSends,
		words{"It is not after send_at, or not after now.", "Elle n’est pas après send_at, ou pas après maintenant."},
		words{"Give a later time, or none.", "Donnez une heure plus tardive, ou aucune."})
	expireAtFar = newInvalid("expire_at_too_far", "expire_at", "The expire_at must be at most 3 days after the time of sending.", onSends,
		words{"Carriers do not try that long.", "Les opérateurs n’essaient pas si longtemps."},
		words{"Give an earlier time, or none.", "Donnez une heure plus proche, ou aucune."})
	codeRequired = newInvalid("code_required", "code", "The code is required.", "verifyTestNumber",
		words{"Test number: no code.", "Numéro de test : pas de code."},
		words{"Give one.", "Donnez-le."})
	codeInvalid = newInvalid("code_invalid", "code", "The code must be 6 digits.", "verifyTestNumber",
		words{"Test number: not six digits.", "Numéro de test : pas six chiffres."},
		words{"Type it as in the SMS.", "Tapez-le comme dans le SMS."})

	// 422: bulk and template (rule api 7.1). The message is textInvalid, the code that of the first field.

	_ = newRefusal(422, "", textInvalid, "", retryNo,
		words{"A batch failed the validation; errors has the fields, and X-Error-Code is that of the first.", "Un lot n’est pas valide ; errors donne les champs, et X-Error-Code est celui du premier."},
		words{"Read errors.", "Lisez errors."})
	senderFieldRequired = newInvalid("sender_required", "sender", "The sender field is required.", onBatches,
		words{"A batch without a sender.", "Un lot sans expéditeur."},
		words{"Give one.", "Donnez-en un."})
	messagesEmpty = newInvalid("messages_empty", "messages", "The messages field must contain at least one item.", "sendBulk",
		words{"messages is missing, empty or no list.", "messages manque, est vide ou n’est pas une liste."},
		words{"1 to 500 messages.", "De 1 à 500 messages."})
	messagesMany = newInvalid("messages_too_many", "messages", "The messages field must not contain more than 500 items.", "sendBulk",
		words{"Too many.", "Trop."},
		words{"Send several batches.", "Envoyez plusieurs lots."})
	itemNumberRequired = newInvalidItem("phone_number_required", "messages.N.phone_number", endRequired, "sendBulk",
		words{"Items are counted from 0.", "Les éléments sont comptés à partir de 0."},
		words{"Give one.", "Donnez-en un."})
	itemNumberInvalid = newInvalidItem("phone_number_invalid", "messages.N.phone_number", endNumber, "sendBulk",
		words{"It is no Burundi mobile number.", "Ce n’est pas un numéro mobile du Burundi."},
		words{"Correct it or leave it out.", "Corrigez-le ou retirez-le."})
	itemMessageRequired = newInvalidItem("message_required", "messages.N.message", endRequired, "sendBulk",
		words{"Missing, blank or no string.", "Il manque, est vide ou n’est pas une chaîne."},
		words{"Give one.", "Donnez-en un."})
	itemMessageLong = newInvalidItem("message_too_long", "messages.N.message", endMessageLong, "sendBulk",
		words{"Too long.", "Trop long."},
		words{"Shorten it.", "Raccourcissez-le."})
	itemReferenceInvalid = newInvalidItem("client_reference_invalid", "messages.N.client_reference", endReference, "sendBulk",
		words{"It is no string, too long, or has control characters.", "Ce n’est pas une chaîne, elle est trop longue, ou a des caractères de contrôle."},
		words{"1 to 64 printable characters.", "De 1 à 64 caractères imprimables."})
	templateRequired = newInvalid("template_required", "template", "The template field is required.", "sendTemplate previewSms",
		words{"template is missing, blank or no string.", "template manque, est vide ou n’est pas une chaîne."},
		words{"Give one.", "Donnez-en un."})
	templateLong = newInvalid("template_too_long", "template", "The template field must not exceed 600 characters.", "sendTemplate previewSms",
		words{"Counted before rendering.", "Compté avant le remplissage."},
		words{"Shorten it.", "Raccourcissez-le."})
	recipientsEmpty = newInvalid("recipients_empty", "recipients", "The recipients field must contain at least one item.", "sendTemplate",
		words{"recipients is missing, empty or no list.", "recipients manque, est vide ou n’est pas une liste."},
		words{"1 to 500 recipients.", "De 1 à 500 destinataires."})
	recipientsMany = newInvalid("recipients_too_many", "recipients", "The recipients field must not contain more than 500 items.", "sendTemplate",
		words{"Too many.", "Trop."},
		words{"Send several batches.", "Envoyez plusieurs lots."})
	recipientNumberRequired = newInvalidItem("phone_number_required", "recipients.N.phone_number", endRequired, "sendTemplate",
		words{"Recipients are counted from 0 here.", "Ici, les destinataires sont comptés à partir de 0."},
		words{"Give one.", "Donnez-en un."})
	recipientNumberInvalid = newInvalidItem("phone_number_invalid", "recipients.N.phone_number", endNumber, "sendTemplate",
		words{"It is no Burundi mobile number.", "Ce n’est pas un numéro mobile du Burundi."},
		words{"Correct it or leave it out.", "Corrigez-le ou retirez-le."})
	recipientVariablesRequired = newInvalidItem("variables_required", "recipients.N.variables", endRequired, "sendTemplate",
		words{"Missing, null or no object; {} is fine.", "Il manque, est null ou n’est pas un objet ; {} convient."},
		words{"Give an object.", "Donnez un objet."})
	recipientVariableLong = newInvalidItem("variable_too_long", "recipients.N.variables.K", endVariableLong, "sendTemplate",
		words{"The value is too long.", "La valeur est trop longue."},
		words{"Shorten it.", "Raccourcissez-la."})
	recipientVariableText = newInvalidItem("variable_not_a_string", "recipients.N.variables.K", endVariableText, "sendTemplate",
		words{"The value is a number, a list or an object.", "La valeur est un nombre, une liste ou un objet."},
		words{"Quote it; null is fine.", "Mettez-la entre guillemets ; null convient."})
	recipientReferenceInvalid = newInvalidItem("client_reference_invalid", "recipients.N.client_reference", endReference, "sendTemplate",
		words{"It is no string, too long, or has control characters.", "Ce n’est pas une chaîne, elle est trop longue, ou a des caractères de contrôle."},
		words{"1 to 64 printable characters.", "De 1 à 64 caractères imprimables."})
	moreFields = newInvalid("", moreKey, "There are N further fields that are not listed.", onBatches,
		words{"Over 2,000 fields fail; this stands at the key more.", "Plus de 2 000 champs sont faux ; ceci est sous la clé more."},
		words{"Correct what is listed first.", "Corrigez d’abord ce qui est listé."})
	variablesRequired = newInvalidItem("variables_required", "variables", endRequired, "previewSms",
		words{"Preview: variables is no object.", "Aperçu : variables n’est pas un objet."},
		words{"Give an object.", "Donnez un objet."})
	variableLong = newInvalidItem("variable_too_long", "variables.K", endVariableLong, "previewSms",
		words{"Preview: the value is too long.", "Aperçu : la valeur est trop longue."},
		words{"Shorten it.", "Raccourcissez-la."})
	variableText = newInvalidItem("variable_not_a_string", "variables.K", endVariableText, "previewSms",
		words{"Preview: the value is no string.", "Aperçu : la valeur n’est pas une chaîne."},
		words{"Quote it.", "Mettez-la entre guillemets."})
	keyReused = newRefusal(422, "idempotency_key_reused", "The idempotency key was already used with a different request.", onSends, retryNo,
		words{"The same key came with another body or endpoint within 24 hours.", "La même clé est venue avec un autre corps ou chemin en 24 heures."},
		words{"A new key for a new request.", "Une nouvelle clé pour une nouvelle requête."})

	// 422: opt-outs.

	optOutsEmpty = newInvalid("opt_outs_empty", "opt_outs", "The opt_outs field must contain at least one item.", "addOptOuts",
		words{"opt_outs is empty or no list.", "opt_outs est vide ou n’est pas une liste."},
		words{"1 to 500 entries.", "De 1 à 500 entrées."})
	optOutsMany = newInvalid("opt_outs_too_many", "opt_outs", "The opt_outs field must not contain more than 500 items.", "addOptOuts",
		words{"Too many.", "Trop."},
		words{"Send several requests.", "Envoyez plusieurs requêtes."})
	optOutNumberRequired = newInvalidItem("phone_number_required", "opt_outs.N.phone_number", endRequired, "addOptOuts",
		words{"Entries are counted from 0.", "Les entrées sont comptées à partir de 0."},
		words{"Give one.", "Donnez-en un."})
	optOutNumberInvalid = newInvalidItem("phone_number_invalid", "opt_outs.N.phone_number", endNumber, "addOptOuts",
		words{"It is no Burundi mobile number.", "Ce n’est pas un numéro mobile du Burundi."},
		words{"Correct it or leave it out.", "Corrigez-le ou retirez-le."})
	optOutSenderInvalid = newInvalidItem("sender_invalid", "opt_outs.N.sender", endSender, "addOptOuts",
		words{"Other characters, spaces, or too long.", "D’autres caractères, des espaces, ou trop long."},
		words{"ASCII letters and digits only, or null.", "Des lettres et chiffres ASCII seulement, ou null."})

	// 422: lists and look-ups.

	statusInvalid = newInvalid("status_invalid", "status", "The status must be pending, sent or failed.", "listSms listBatchMessages",
		words{"List: unknown status.", "Liste : état inconnu."},
		words{"One of the three.", "L’un des trois."})
	batchInvalid = newInvalid("batch_id_invalid", "batch_id", "The batch_id must be a ULID.", "listSms",
		words{"List: not an id.", "Liste : pas un identifiant."},
		words{"batch_id of the send result.", "batch_id de la réponse à l’envoi."})
	fromInvalid = newInvalid("from_invalid", "from", "The from must be a date and time such as 2026-03-01T10:00:00+02:00.", "listSms listInbound",
		words{"List: not a time.", "Liste : pas une date."},
		words{"RFC 3339.", "RFC 3339."})
	toInvalid = newInvalid("to_invalid", "to", "The to must be a date and time such as 2026-03-01T10:00:00+02:00.", "listSms listInbound",
		words{"List: not a time.", "Liste : pas une date."},
		words{"RFC 3339.", "RFC 3339."})
	limitInvalid = newInvalid("limit_invalid", "limit", "The limit must be between 1 and 100.", onLists,
		words{"List: out of bounds.", "Liste : hors limites."},
		words{"1 to 100.", "De 1 à 100."})
	cursorInvalid = newInvalid("cursor_invalid", "cursor", "The cursor is not valid.", onLists,
		words{"List: not a cursor of this list.", "Liste : pas un curseur de cette liste."},
		words{"next_cursor of the page before, same filters.", "next_cursor de la page précédente, mêmes filtres."})
	stateInvalid = newInvalid("state_invalid", "state", "The state must be pending, delivered or failed.", "listWebhookDeliveries",
		words{"Deliveries: unknown state.", "Événements : état inconnu."},
		words{"One of the three.", "L’un des trois."})
	eventInvalid = newInvalid("event_invalid", "event", "The event must be sms.sent, sms.failed, sms.received or balance.low.", "listWebhookDeliveries",
		words{"Deliveries: unknown event.", "Événements : événement inconnu."},
		words{"One of the four.", "L’un des quatre."})
	messageIDInvalid = newInvalid("message_id_invalid", "message_id", "The message_id must be a whole number above 0 or a ULID.", "listWebhookDeliveries",
		words{"Deliveries: neither of a message’s ids.", "Événements : aucun des deux identifiants d’un message."},
		words{"message_id of the webhook, or id of the send result.", "message_id du webhook, ou id de la réponse à l’envoi."})
	sinceInvalid = newInvalid("since_invalid", "since", "The since must be a date and time such as 2026-03-01T10:00:00+02:00.", "listWebhookDeliveries",
		words{"Deliveries: not a time.", "Événements : pas une date."},
		words{"RFC 3339.", "RFC 3339."})
	parameterUnknown = newInvalidItem("parameter_unknown", "K", endParameter, onAsked,
		words{"A look-up with a parameter that it does not have: perhaps mistyped.", "Une recherche avec un paramètre qu’elle n’a pas : peut-être mal écrit."},
		words{"See which there are.", "Voyez lesquels existent."})
	queryInvalid = newInvalid("query_invalid", "query", "The query string is not valid.", onAsked,
		words{"A percent sign or a semicolon that is not escaped.", "Un signe pourcent ou un point-virgule non échappé."},
		words{"Escape parameters with a URL library.", "Faites échapper les paramètres par une bibliothèque."})

	// Temporary: the client may try again.

	tooManySends = newRefusal(429, "too_many_requests", "Too Many Attempts.", onSends, retryLater,
		words{"Over the rate of send requests.", "Au-dessus du débit des requêtes d’envoi."},
		words{"Wait for Retry-After seconds.", "Attendez les secondes de Retry-After."})
	tooManyLookups = newRefusal(429, "too_many_lookups", "Too Many Attempts.", onLooks, retryLater,
		words{"Too many of your look-ups are under way at the same time.", "Trop de vos recherches sont en cours en même temps."},
		words{"Ask one after the other.", "Demandez l’une après l’autre."})
	tooManyFailures = newRefusal(429, "too_many_failed_logins", "Too Many Attempts.", onAll, retryLater,
		words{"Too many wrong tokens came from your address.", "Trop de jetons faux sont venus de votre adresse."},
		words{"Correct the token, then wait for Retry-After seconds.", "Corrigez le jeton, puis attendez les secondes de Retry-After."})
	codeTooSoon = newRefusal(429, "code_too_soon", "Too Many Attempts.", "putTestNumber", retryLater,
		words{"A code was sent less than a minute ago, or five within the hour.", "Un code est parti il y a moins d’une minute, ou cinq en une heure."},
		words{"Wait for Retry-After seconds.", "Attendez les secondes de Retry-After."})
	serverError = newRefusal(500, "server_error", "Server error.", onAll, retryAtOnce,
		words{"A fault of ours; it is in our log, under the X-Request-Id of the answer.", "Une faute de notre part ; elle est dans notre journal, sous le X-Request-Id de la réponse."},
		words{"Repeat with the same Idempotency-Key.", "Répétez avec la même Idempotency-Key."})
	unavailable = newRefusal(503, "unavailable", "Service unavailable.", onAll, retryLater,
		words{"We cannot take requests just now. Nothing was charged.", "Nous ne pouvons pas prendre de requêtes en ce moment. Rien n’a été débité."},
		words{"Repeat with the same Idempotency-Key.", "Répétez avec la même Idempotency-Key."})
)
