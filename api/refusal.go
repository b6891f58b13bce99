package api

import (
	"strings"

	"intumwa/intake"
	"intumwa/sms"
)

// refusal is one reason for refusing a request: the only source of it for handlers, OpenAPI document and reference
// page.
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
	onPaid               = onSends + " createVerification"
	onBatches operations = "sendBulk sendTemplate"
	onBodies             = onPaid + " previewSms putTestNumber verifyTestNumber addOptOuts checkVerification " +
		"sendFeedback " +
		onContactBody
	onLists               = "listSms listBatchMessages listWebhookDeliveries listInbound listOptOuts " + onContactLists
	onFiltered            = onLists + " removeOptOut getUsage"
	onCancels  operations = "cancelSms cancelBatch cancelBatchByID"
	onNamed               = "getVerification checkVerification cancelVerification sendFeedback getSms getBatch " +
		"listBatchMessages getWebhookDelivery resendWebhookDelivery getInbound removeOptOut " + onContactOnes +
		" " + onCancels
	onReads = onLists + " listEvents getVerification getSms getBatch getBalance getUsage getTestNumber " +
		"getWebhookDelivery getInbound " + onContactReads
	onAsked = onReads + " removeOptOut cancelVerification deleteContact deleteGroup " + onCancels
	onLooks = onAsked + " resendWebhookDelivery addOptOuts putTestNumber verifyTestNumber " +
		"checkVerification sendFeedback " + onContactBody
	onChanges = onBodies + " resendWebhookDelivery removeOptOut cancelVerification deleteContact deleteGroup " + onCancels
	onAll     = onBodies + " " + onAsked + " resendWebhookDelivery"
)

// retry is whether the client may send the same request again.
type retry int

const (
	retryNo retry = iota
	retryFixed
	retryLater
	retryAtOnce
)

func (r retry) words() words {
	return [...]words{
		{"no", "non"}, {"after the fix", "oui, une fois le problème corrigé"},
		{"yes, after Retry-After", "oui, après Retry-After"},
		{"yes, in a moment", "oui, dans un instant"},
	}[r]
}

// refusals are all of them, in the order of the files: the compiler takes files in the order of their names.
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

// newInvalidItem is a refusal of a batch's field; its text is "The <field>" and end.
func newInvalidItem(code, field, end string, on operations, cause, fix words) *refusal {
	return newInvalid(code, field, "The "+field+end, on, cause, fix)
}

// end returns the text after the field's name.
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

// The texts, codes and explanations of business rules and of invalid requests.
var (
	// 400: the business rules (rule api 7.2); the texts come from intake.

	_ = refusalOfRule("no_company", intake.RefuseNoCompany, onAll, retryFixed,
		words{"The user of the API key has no company.", "L’utilisateur de la clé d’API n’a pas d’entreprise."},
		words{"Create one in the dashboard.", "Créez-en une dans le tableau de bord."})
	_ = refusalOfRule("test_sender", intake.RefuseTestSender(documentedTestSender), onBatches, retryNo,
		words{"Test mode is only for single messages.", "Le mode test n’accepte que les messages unitaires."},
		words{"Use POST /v1/sms, or an approved sender.", "Utilisez POST /v1/sms, ou un expéditeur approuvé."})
	_ = refusalOfRule("company_not_approved", intake.RefuseNotApproved, onPaid, retryFixed,
		words{"An administrator has not approved the company yet.",
			"Un administrateur n’a pas encore approuvé l’entreprise."},
		words{"Wait for the approval. Until then, use test mode.",
			"Attendez l’approbation ; d’ici là, utilisez le mode test."})
	_ = refusalOfRule("company_not_verified", intake.RefuseNotVerified, onBatches, retryFixed,
		words{"Bulk and template sends need a verified company.",
			"Les envois groupés et par modèle exigent une entreprise vérifiée."},
		words{"Have it verified. Single sends work already.", "Faites-la vérifier ; les envois unitaires fonctionnent déjà."})
	_ = refusalOfRule("sender_not_found", intake.RefuseSenderUnknown, onPaid+" addOptOuts", retryFixed,
		words{"Your company has no such sender. Upper and lower case matter.",
			"Votre entreprise n’a pas cet expéditeur ; la casse compte."},
		words{"Register the sender in the dashboard.", "Demandez cet expéditeur dans le tableau de bord."})
	_ = refusalOfRule("sender_not_approved", intake.RefuseSenderUnready, onPaid, retryFixed,
		words{"The sender is not approved yet.", "L’expéditeur n’est pas encore approuvé."},
		words{"Wait for the approval, or use another sender.", "Attendez l’approbation, ou utilisez un autre expéditeur."})
	_ = refusalOfRule("country_mismatch", intake.RefuseCountry("BI", "K"), onBatches, retryNo,
		words{"The sender is for carriers of another country.", "L’expéditeur relève d’opérateurs d’un autre pays."},
		words{"Use a sender of the recipients' country.", "Utilisez un expéditeur du pays des destinataires."})
	_ = refusalOfRule("opted_out", intake.RefuseOptedOut, "sendSms createVerification", retryNo,
		words{"The recipient opted out of this sender by a stop word, or you added the number to the opt-outs.",
			"Le destinataire s’est désinscrit des messages de cet expéditeur par un mot comme STOP, ou vous l’avez ajouté aux " +
				"désinscriptions."},
		words{"Do not write to this number. A start word, or DELETE /v1/opt-outs/{phone_number}, ends the opt-out.",
			"Ne lui envoyez rien. Un mot comme START, ou DELETE /v1/opt-outs/{phone_number}, met fin à la désinscription."})
	_ = refusalOfRule("opted_out", intake.RefuseRecipientsOptedOut("N"), onBatches, retryNo,
		words{"Some recipients of the batch opted out. The response lists all of them, counted from 1.",
			"Des destinataires du lot se sont désinscrits. La réponse les indique tous ; ils sont comptés à partir de 1."},
		words{"Remove them.", "Retirez-les."})
	optOutsFull = newRefusal(400, "opt_outs_full", "The opt-out list is full.", "addOptOuts", retryFixed,
		words{"The list has 1,000,000 entries. Opt-outs by text message are still added.",
			"La liste compte 1 000 000 d’entrées. Les désinscriptions envoyées par les téléphones sont toujours enregistrées."},
		words{"Remove entries.", "Retirez des entrées."})
	_ = refusalOfRule("no_carrier", intake.RefuseNoCarrier, "sendSms createVerification putTestNumber", retryNo,
		words{"The number is valid, but no carrier serves it.", "Le numéro est valide, mais aucun opérateur ne le dessert."},
		words{"Try another number of the recipient.", "Essayez un autre numéro du destinataire."})
	_ = refusalOfRule("no_carrier", intake.RefuseRecipientCarrier("N"), onBatches, retryNo,
		words{"No carrier serves this recipient of the batch. Recipients are counted from 1.",
			"Aucun opérateur ne dessert ce destinataire du lot. Les destinataires sont comptés à partir de 1."},
		words{"Remove this recipient.", "Retirez ce destinataire."})
	_ = refusalOfRule("sender_not_registered", intake.RefuseUnregistered, "sendSms", retryFixed,
		words{"Your sender is approved, but the carrier of this number does not know it yet. It may work at other carriers.",
			"Votre expéditeur est approuvé, mais l’opérateur de ce numéro ne le connaît pas encore. Il peut fonctionner chez " +
				"d’autres opérateurs."},
		words{"Use another sender, or wait: the dashboard shows where each sender works.",
			"Utilisez un autre expéditeur, ou attendez : le tableau de bord montre où chaque expéditeur fonctionne."})
	_ = refusalOfRule("sender_not_registered", intake.RefuseRecipientUnregistered("N"), onBatches, retryFixed,
		words{"The carrier of this recipient does not know your sender yet. The text names the first such recipient, " +
			"counted from 1. Nothing was queued.", "L’opérateur de ce destinataire ne connaît pas encore votre expéditeur. Le " +
			"texte indique le premier destinataire concerné, compté à partir de 1. Rien n’a été mis en file d’attente."},
		words{"Remove the recipients of this carrier, or use another sender.",
			"Retirez les destinataires de cet opérateur, ou utilisez un autre expéditeur."})
	_ = refusalOfRule("missing_variables", intake.RefuseContact(17, []string{"K"}), "sendTemplate", retryNo,
		words{"A member of the group lacks fields that the template uses.",
			"Il manque à un membre du groupe des champs que le modèle utilise."},
		words{"Give the contact these fields.", "Donnez ces champs au contact."})
	_ = refusalOfRule("missing_variables", intake.RefuseVariables("N", []string{"K"}), "sendTemplate previewSms", retryNo,
		words{"Values are missing. The text names the first such recipient and the missing placeholders.",
			"Des valeurs manquent ; le texte indique le premier destinataire concerné et les champs qui lui manquent."},
		words{"Give every placeholder a value; null is allowed.", "Donnez une valeur à chaque champ ; null est permis."})
	_ = refusalOfRule("message_empty", intake.RefuseRecipientEmpty("N"), "sendTemplate previewSms", retryNo,
		words{"The text is empty for this recipient.", "Le texte est vide pour ce destinataire."},
		words{"Remove this recipient, or give a value.", "Retirez ce destinataire, ou donnez une valeur."})
	_ = refusalOfRule("too_many_segments", intake.RefuseRecipientLong("N"), "sendTemplate previewSms", retryNo,
		words{"With its values, the text has more than 255 segments.", "Le texte obtenu dépasse 255 segments."},
		words{"Shorten the values.", "Raccourcissez les valeurs."})
	_ = refusalOfRule("too_many_segments", intake.RefuseTooLong, "sendSms", retryNo,
		words{"The text has more segments than we allow.", "Le texte a plus de segments que cette installation n’en permet."},
		words{"Shorten it.", "Raccourcissez-le."})
	_ = refusalOfRule("insufficient_credits", intake.RefuseCredits("message", "N"), "sendSms createVerification",
		retryFixed,
		words{"The balance is below the cost. Nothing was charged.", "Le solde est inférieur au coût. Rien n’a été prélevé."},
		words{"Buy credits.", "Achetez des crédits."})
	_ = refusalOfRule("insufficient_credits", intake.RefuseCredits("batch", "N"), onBatches, retryFixed,
		words{"The balance is below the cost of the whole batch. Nothing was queued.",
			"Le solde est inférieur au coût de tout le lot. Rien n’a été mis en file d’attente."},
		words{"Buy credits, or send a part.", "Achetez des crédits, ou envoyez une partie du lot."})
	_ = refusalOfRule("repeated_too_soon", intake.RefuseTooSoon("", "N seconds"), "sendSms", retryNo,
		words{"Your company has a limit on repeated texts (off by default), and this text was sent to this number a " +
			"moment ago.", "Votre entreprise a une limite de répétition (inactive par défaut), et ce texte vient de partir " +
			"vers ce numéro."},
		words{"Do not send it twice. To repeat a request, keep its Idempotency-Key.",
			"Ne l’envoyez pas deux fois ; pour répéter une requête, gardez son Idempotency-Key."})
	_ = refusalOfRule("repeated_too_soon", intake.RefuseTooSoon("N", "N seconds"), onBatches, retryNo,
		words{"The same limit, in a batch. An earlier recipient of the batch counts too. Nothing was queued.",
			"La même limite, dans un lot ; un destinataire précédent du même lot compte aussi. Rien n’a été mis en file " +
				"d’attente."},
		words{"Remove this recipient.", "Retirez ce destinataire."})
	_ = refusalOfRule("repeated_too_often", intake.RefuseRepeats("", "N"), "sendSms", retryNo,
		words{"A limit, off by default: this number has already received this text as often as allowed today.",
			"Une limite, inactive par défaut : ce numéro a déjà reçu ce texte le nombre maximal de fois aujourd’hui."},
		words{"Send it tomorrow.", "Envoyez-le demain."})
	_ = refusalOfRule("repeated_too_often", intake.RefuseRepeats("N", "N"), onBatches, retryNo,
		words{"The same limit, in a batch.", "La même limite, dans un lot."},
		words{"Remove this recipient.", "Retirez ce destinataire."})
	_ = refusalOfRule("number_limit", intake.RefuseNumber("", "N"), "sendSms createVerification", retryNo,
		words{"A limit, off by default: this number has already received as many of your messages as allowed today.",
			"Une limite, inactive par défaut : ce numéro a déjà reçu le nombre maximal de vos messages aujourd’hui."},
		words{"Send it tomorrow.", "Envoyez-le demain."})
	_ = refusalOfRule("number_limit", intake.RefuseNumber("N", "N"), onBatches, retryNo,
		words{"The same limit, in a batch.", "La même limite, dans un lot."},
		words{"Remove this recipient.", "Retirez ce destinataire."})
	_ = refusalOfRule("daily_cap", intake.RefuseDailyCap("message", "N", "N", "N"), "sendSms createVerification", retryNo,
		words{"A limit, off by default, on the credits that your company can spend in a day. Nothing was charged.",
			"Une limite, inactive par défaut, sur les crédits que l’entreprise peut dépenser par jour. Rien n’a été prélevé."},
		words{"Send it tomorrow, or ask us for a higher limit.",
			"Envoyez-le demain, ou demandez-nous une limite plus élevée."})
	_ = refusalOfRule("group_left_out", intake.RefuseAllLeftOut, "sendTemplate", retryNo,
		words{"Every member has opted out, has no carrier, or is at a carrier where the sender is not registered.",
			"Chaque membre s’est désinscrit, n’a pas d’opérateur, ou relève d’un opérateur où l’expéditeur n’est pas " +
				"enregistré."},
		words{"Send to another group.", "Envoyez à un autre groupe."})
	_ = refusalOfRule("daily_cap", intake.RefuseDailyCap("batch", "N", "N", "N"), onBatches, retryNo,
		words{"The same limit, for a whole batch. Nothing was queued.",
			"La même limite, pour tout un lot. Rien n’a été mis en file d’attente."},
		words{"Send a part, or ask us for a higher limit.",
			"Envoyez-en une partie, ou demandez-nous une limite plus élevée."})
	_ = refusalOfRule("quiet_hours", intake.RefuseQuiet, onBatches, retryNo,
		words{"The batch would have to wait until the quiet hours end, but expire_at is earlier.",
			"Le lot devrait attendre la fin des heures sans envoi, mais expire_at tombe avant."},
		words{"Give a later expire_at, or send single messages.",
			"Donnez un expire_at plus tardif, ou envoyez des messages unitaires."})
	_ = refusalOfRule("no_test_number", intake.RefuseNoTestNumber, "sendSms createVerification", retryFixed,
		words{"You have no verified test number.", "Vous n’avez pas de numéro de test vérifié."},
		words{"Call PUT /v1/test-number, then confirm the number.", "Appelez PUT /v1/test-number, puis confirmez le numéro."})
	_ = refusalOfRule("other_test_number", intake.RefuseOtherTestNumber, "sendSms createVerification", retryNo,
		words{"The recipient is not your test number.", "Le destinataire n’est pas le numéro de test."},
		words{"Send to your test number.", "Envoyez le message au numéro de test."})
	_ = refusalOfRule("test_quota", intake.RefuseTestQuota, "sendSms createVerification", retryNo,
		words{"The test quota is used up. A failed message gives its segments back.",
			"Le quota de test est épuisé. Les segments des messages en échec y sont recrédités."},
		words{"Go live.", "Passez en production."})
	_ = refusalOfRule("sandbox_quota", intake.RefuseSandboxQuota, "sendSms createVerification", retryNo,
		words{"You have sent 1,000 messages to sandbox numbers within 24 hours.",
			"Vous avez envoyé 1 000 messages aux numéros du bac à sable en 24 heures."},
		words{"Continue tomorrow.", "Continuez demain."})

	// 400: the test number.

	verifiedAlready = newRefusal(400, "test_number_verified", "This number is already your verified test number.",
		"putTestNumber", retryNo,
		words{"The number is already verified.", "Le numéro est déjà vérifié."},
		words{"–", "–"})
	noReplacements = newRefusal(400, "test_number_final", "The test number cannot be replaced any more.", "putTestNumber",
		retryNo,
		words{"It has been replaced as often as allowed.", "Il a déjà été remplacé le nombre maximal de fois."},
		words{"Keep the number; go live.", "Gardez le numéro ; passez en production."})
	codeWrong = newRefusal(400, "code_wrong", "The code is not right.", "verifyTestNumber checkVerification", retryNo,
		words{"It is not the last code that we sent.", "Ce n’est pas le dernier code envoyé."},
		words{"Enter it again. You have five tries.", "Saisissez-le de nouveau. Vous avez cinq tentatives."})
	codeNone = newRefusal(400, "code_none", "There is no code to confirm. Ask for a new one.", "verifyTestNumber", retryNo,
		words{"No code was sent, or it was already used.", "Aucun code n’a été envoyé, ou il a déjà servi."},
		words{"Call PUT /v1/test-number.", "Appelez PUT /v1/test-number."})
	codeExpired = newRefusal(400, "code_expired", "The code has expired. Ask for a new one.",
		"verifyTestNumber checkVerification cancelVerification", retryNo,
		words{"Its time is over: 10 minutes, or the ttl of the verification.",
			"Sa durée est écoulée : 10 minutes, ou le ttl de la vérification."},
		words{"Call PUT /v1/test-number, or start another verification.",
			"Appelez PUT /v1/test-number, ou commencez une autre vérification."})
	codeTries = newRefusal(400, "code_tries", "The code was mistyped too often. Ask for a new one.", "verifyTestNumber",
		retryNo,
		words{"Five wrong tries.", "Cinq tentatives erronées."},
		words{"Call PUT /v1/test-number.", "Appelez PUT /v1/test-number."})

	// The request as a whole.

	malformedJSON = newRefusal(400, "malformed_json", "The request body is not valid JSON.", onBodies, retryNo,
		words{"It has a syntax error or half a surrogate pair, or is nested too deeply.",
			"Une erreur de syntaxe, une demi-paire de substitution, ou trop de niveaux d’imbrication."},
		words{"Encode the body with a JSON library.", "Produisez le corps avec une bibliothèque JSON."})
	notUTF8 = newRefusal(400, "body_encoding", "The request body is not valid JSON: it is not encoded in UTF-8.", onBodies,
		retryNo,
		words{"JSON is UTF-8. The body has another encoding, or mixes two.",
			"Le JSON est en UTF-8. Le corps a un autre encodage, ou en mélange deux."},
		words{"Encode the body in UTF-8, or name ISO-8859-1, ISO-8859-15 or windows-1252 as the charset of the Content-Type.",
			"Encodez le corps en UTF-8, ou nommez ISO-8859-1, ISO-8859-15 ou windows-1252 comme charset du Content-Type."})
	keyInvalid = newRefusal(400, "idempotency_key_invalid", "The Idempotency-Key header is not valid.", onPaid, retryNo,
		words{"It is not 1 to 255 visible ASCII characters, or there are two.",
			"L’en-tête ne contient pas une clé de 1 à 255 caractères ASCII visibles, ou il y en a deux."},
		words{"Use a UUID, for example.", "Utilisez par exemple un UUID."})
	unauthenticatedCaller = newRefusal(401, "unauthenticated", "Unauthenticated.", onAll, retryFixed,
		words{"The API key is missing, mistyped, revoked or expired.",
			"La clé d’API est absente, mal écrite, révoquée ou expirée."},
		words{"Send Authorization: Bearer <API_TOKEN>.", "Envoyez Authorization: Bearer <API_TOKEN>."})
	wrongNetwork = newRefusal(403, "token_network", "The API token must not be used from this network.", onAll, retryFixed,
		words{"The API key works only from certain networks, and the request comes from another address.",
			"La clé d’API n’est acceptée que depuis certains réseaux, et la requête vient d’une autre adresse."},
		words{"Send from an allowed network, or create a key for yours.",
			"Envoyez depuis un réseau autorisé, ou créez une clé avec le vôtre."})
	mayNotSend = newRefusal(403, "token_scope", "The API token does not have the scope send.", onChanges, retryFixed,
		words{"The API key can only read.", "La clé d’API ne permet que la lecture."},
		words{"Create a key with the scope send.", "Créez une clé avec l’autorisation send."})
	mayNotRead = newRefusal(403, "token_scope", "The API token does not have the scope read.", onReads, retryFixed,
		words{"The API key can only send.", "La clé d’API ne permet que l’envoi."},
		words{"Create a key with the scope read.", "Créez une clé avec l’autorisation read."})
	notFound = newRefusal(404, "not_found", "Not found.", onNamed, retryNo,
		words{"What the path names does not exist, or belongs to another company.",
			"Ce que désigne le chemin n’existe pas, ou appartient à une autre entreprise."},
		words{"Check the address.", "Vérifiez l’adresse."})
	wrongMethod = newRefusal(405, "method_not_allowed", "Method not allowed.", "", retryNo,
		words{"The path accepts other methods.", "Le chemin accepte d’autres méthodes."},
		words{"See the Allow header.", "Consultez l’en-tête Allow."})
	tooSlow = newRefusal(408, "body_too_slow", "The request body took too long to arrive.", onBodies, retryAtOnce,
		words{"The connection is too slow or was interrupted.", "La connexion est trop lente, ou a été coupée."},
		words{"Send smaller batches.", "Envoyez des lots plus petits."})
	keyInUse = newRefusal(409, "idempotency_key_in_use", "A request with this idempotency key is still being processed.",
		onPaid, retryAtOnce,
		words{"The first request has no response yet.", "La première requête n’a pas encore reçu de réponse."},
		words{"Wait a moment and repeat it.", "Attendez un instant et répétez-la."})
	cursorExpired = newRefusal(410, "cursor_expired", "Events after this cursor are gone.", "listEvents", retryNo,
		words{"Events were deleted because you had not asked for a long time, or were lost when we restored a backup.",
			"Des événements ont été supprimés parce que vous ne les aviez pas demandés depuis longtemps, ou perdus quand nous " +
				"avons restauré une sauvegarde."},
		words{"Look up what you missed. Continue with the next_cursor of this response.",
			"Consultez ce qui vous manque, puis continuez avec le next_cursor de cette réponse."})
	tooLarge = newRefusal(413, "body_too_large", "The request body is too large.", onBodies, retryNo,
		words{"It is larger than 16 MiB.", "Il dépasse 16 Mio."},
		words{"Send to at most 500 recipients per request.", "Envoyez à 500 destinataires au plus par requête."})
	notJSON = newRefusal(415, "content_type_invalid", "The Content-Type must be application/json.", onBodies, retryNo,
		words{"The Content-Type header names another type.", "L’en-tête Content-Type indique un autre type."},
		words{"Send Content-Type: application/json.", "Envoyez Content-Type: application/json."})
)
