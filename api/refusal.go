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
	onSends    operations = "sendSms sendBulk sendTemplate"
	onBatches  operations = "sendBulk sendTemplate"
	onBodies              = onSends + " previewSms putTestNumber verifyTestNumber addOptOuts"
	onLists    operations = "listSms listBatchMessages listWebhookDeliveries listInbound listOptOuts"
	onFiltered            = onLists + " removeOptOut"
	onCancels  operations = "cancelSms cancelBatch cancelBatchByID"
	onNamed               = "getSms getBatch listBatchMessages getWebhookDelivery resendWebhookDelivery getInbound removeOptOut " + onCancels
	onReads               = onLists + " getSms getBatch getBalance getTestNumber getWebhookDelivery getInbound"
	onAsked               = onReads + " removeOptOut " + onCancels
	onLooks               = onAsked + " resendWebhookDelivery addOptOuts putTestNumber verifyTestNumber"
	onChanges             = onBodies + " resendWebhookDelivery removeOptOut " + onCancels
	onAll                 = onBodies + " " + onAsked + " resendWebhookDelivery"
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
		{"no", "non"}, {"after the fix", "oui, une fois le problème corrigé"}, {"yes, after Retry-After", "oui, après Retry-After"},
		{"yes, in a moment", "oui, dans un instant"},
	}[r]
}

// refusals are all of them, in the order of this file, refusedfield.go and refusedlater.go: the compiler takes files in
// the order of their names.
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
		words{"The user of the token has no company.", "L’utilisateur de la clé d’API n’a pas d’entreprise."},
		words{"Create one in the dashboard.", "Créez-en une dans le tableau de bord."})
	_ = refusalOfRule("test_sender", intake.RefuseTestSender(documentedTestSender), onBatches, retryNo,
		words{"Test mode is for single messages.", "Le mode test n’accepte que les messages unitaires."},
		words{"POST /v1/sms, or an approved sender.", "POST /v1/sms, ou un expéditeur approuvé."})
	_ = refusalOfRule("company_not_approved", intake.RefuseNotApproved, onSends, retryFixed,
		words{"An administrator has not approved the company yet.", "Un administrateur n’a pas encore approuvé l’entreprise."},
		words{"Wait for the approval; meanwhile use the test mode.", "Attendez l’approbation ; d’ici là, utilisez le mode test."})
	_ = refusalOfRule("company_not_verified", intake.RefuseNotVerified, onBatches, retryFixed,
		words{"Bulk and template sends need a verified company.", "Les envois groupés et par modèle exigent une entreprise vérifiée."},
		words{"Have it verified; single sends work already.", "Faites-la vérifier ; les envois unitaires fonctionnent déjà."})
	_ = refusalOfRule("sender_not_found", intake.RefuseSenderUnknown, onSends+" addOptOuts", retryFixed,
		words{"The company has no such sender; its case counts.", "Votre entreprise n’a pas cet expéditeur ; la casse compte."},
		words{"Register the sender in the dashboard.", "Demandez cet expéditeur dans le tableau de bord."})
	_ = refusalOfRule("sender_not_approved", intake.RefuseSenderUnready, onSends, retryFixed,
		words{"The sender is not approved yet.", "L’expéditeur n’est pas encore approuvé."},
		words{"Wait for the approval, or use another sender.", "Attendez l’approbation, ou utilisez un autre expéditeur."})
	_ = refusalOfRule("country_mismatch", intake.RefuseCountry("BI", "K"), onBatches, retryNo,
		words{"The sender belongs to operators of another country.", "L’expéditeur relève d’opérateurs d’un autre pays."},
		words{"Use a sender of the recipients' country.", "Utilisez un expéditeur du pays des destinataires."})
	_ = refusalOfRule("opted_out", intake.RefuseOptedOut, "sendSms", retryNo,
		words{"The recipient opted out of this sender: by a stop word, or by your own entry.", "Le destinataire s’est désinscrit des messages de cet expéditeur par un mot comme STOP, ou vous l’avez ajouté aux désinscriptions."},
		words{"Do not send to it. A start word, or DELETE /v1/opt-outs/{phone_number}, ends the opt-out.", "Ne lui envoyez rien. Un mot comme START, ou DELETE /v1/opt-outs/{phone_number}, met fin à la désinscription."})
	_ = refusalOfRule("opted_out", intake.RefuseRecipientsOptedOut("N"), onBatches, retryNo,
		words{"Recipients of a batch opted out. They are counted from 1, and named together.", "Des destinataires du lot se sont désinscrits. La réponse les indique tous ; ils sont comptés à partir de 1."},
		words{"Leave them out.", "Retirez-les."})
	optOutsFull = newRefusal(400, "opt_outs_full", "The opt-out list is full.", "addOptOuts", retryFixed,
		words{"The list has 1,000,000 entries. Opt-outs by handsets are always entered.", "La liste compte 1 000 000 d’entrées. Les désinscriptions envoyées par les téléphones sont toujours enregistrées."},
		words{"Remove entries.", "Retirez des entrées."})
	_ = refusalOfRule("no_carrier", intake.RefuseNoCarrier, "sendSms putTestNumber", retryNo,
		words{"The number is valid, but no carrier serves it.", "Le numéro est valide, mais aucun opérateur ne le dessert."},
		words{"Try another number of the recipient.", "Essayez un autre numéro du destinataire."})
	_ = refusalOfRule("no_carrier", intake.RefuseRecipientCarrier("N"), onBatches, retryNo,
		words{"No carrier serves this recipient of the batch. Recipients are counted from 1.", "Aucun opérateur ne dessert ce destinataire du lot. Les destinataires sont comptés à partir de 1."},
		words{"Leave the recipient out.", "Retirez ce destinataire."})
	_ = refusalOfRule("missing_variables", intake.RefuseVariables("N", []string{"K"}), "sendTemplate previewSms", retryNo,
		words{"The first recipient without all values, and their names.", "Des valeurs manquent ; le texte indique le premier destinataire concerné et les champs qui lui manquent."},
		words{"Give every placeholder a value; null is one.", "Donnez une valeur à chaque champ ; null est permis."})
	_ = refusalOfRule("message_empty", intake.RefuseRecipientEmpty("N"), "sendTemplate previewSms", retryNo,
		words{"The template renders to nothing for this recipient.", "Le modèle ne donne aucun texte pour ce destinataire."},
		words{"Leave the recipient out, or give a value.", "Retirez ce destinataire, ou donnez une valeur."})
	_ = refusalOfRule("too_many_segments", intake.RefuseRecipientLong("N"), "sendTemplate previewSms", retryNo,
		words{"The rendered text has more than 255 segments.", "Le texte obtenu dépasse 255 segments."},
		words{"Shorten the values.", "Raccourcissez les valeurs."})
	_ = refusalOfRule("too_many_segments", intake.RefuseTooLong, "sendSms", retryNo,
		words{"The text has more segments than this installation allows.", "Le texte a plus de segments que cette installation n’en permet."},
		words{"Shorten it.", "Raccourcissez-le."})
	_ = refusalOfRule("insufficient_credits", intake.RefuseCredits("message", "N"), "sendSms", retryFixed,
		words{"The balance is below the cost. Nothing was charged.", "Le solde est inférieur au coût. Rien n’a été prélevé."},
		words{"Buy credits.", "Achetez des crédits."})
	_ = refusalOfRule("insufficient_credits", intake.RefuseCredits("batch", "N"), onBatches, retryFixed,
		words{"The balance is below the cost of the whole batch. Nothing was queued.", "Le solde est inférieur au coût de tout le lot. Rien n’a été mis en file d’attente."},
		words{"Buy credits, or send a part.", "Achetez des crédits, ou envoyez une partie du lot."})
	_ = refusalOfRule("repeated_too_soon", intake.RefuseTooSoon("", "N seconds"), "sendSms", retryNo,
		words{"A limit of this installation or company, off by default: the text went to the number a moment ago.", "Une limite de cette installation ou de votre entreprise, inactive par défaut : ce texte vient de partir vers ce numéro."},
		words{"Do not send it twice; repeat a request with its Idempotency-Key.", "Ne l’envoyez pas deux fois ; pour répéter une requête, gardez son Idempotency-Key."})
	_ = refusalOfRule("repeated_too_soon", intake.RefuseTooSoon("N", "N seconds"), onBatches, retryNo,
		words{"The same limit, in a batch; the first may be an earlier recipient. Nothing was queued.", "La même limite, dans un lot ; un destinataire précédent du même lot compte aussi. Rien n’a été mis en file d’attente."},
		words{"Leave the recipient out.", "Retirez ce destinataire."})
	_ = refusalOfRule("repeated_too_often", intake.RefuseRepeats("", "N"), "sendSms", retryNo,
		words{"A limit, off by default: the number has had this text as often as allowed today.", "Une limite, inactive par défaut : ce numéro a déjà reçu ce texte le nombre maximal de fois aujourd’hui."},
		words{"Send it tomorrow.", "Envoyez-le demain."})
	_ = refusalOfRule("repeated_too_often", intake.RefuseRepeats("N", "N"), onBatches, retryNo,
		words{"The same limit, in a batch.", "La même limite, dans un lot."},
		words{"Leave the recipient out.", "Retirez ce destinataire."})
	_ = refusalOfRule("number_limit", intake.RefuseNumber("", "N"), "sendSms", retryNo,
		words{"A limit, off by default: the number has had as many of your messages as allowed today.", "Une limite, inactive par défaut : ce numéro a déjà reçu le nombre maximal de vos messages aujourd’hui."},
		words{"Send it tomorrow.", "Envoyez-le demain."})
	_ = refusalOfRule("number_limit", intake.RefuseNumber("N", "N"), onBatches, retryNo,
		words{"The same limit, in a batch.", "La même limite, dans un lot."},
		words{"Leave the recipient out.", "Retirez ce destinataire."})
	_ = refusalOfRule("daily_cap", intake.RefuseDailyCap("message", "N", "N", "N"), "sendSms", retryNo,
		words{"A limit, off by default, of the credits that the company may spend today. Nothing was charged.", "Une limite, inactive par défaut, sur les crédits que l’entreprise peut dépenser par jour. Rien n’a été prélevé."},
		words{"Send it tomorrow, or ask us for a higher limit.", "Envoyez-le demain, ou demandez-nous une limite plus élevée."})
	_ = refusalOfRule("daily_cap", intake.RefuseDailyCap("batch", "N", "N", "N"), onBatches, retryNo,
		words{"The same limit, for a whole batch. Nothing was queued.", "La même limite, pour tout un lot. Rien n’a été mis en file d’attente."},
		words{"Send a part, or ask us for a higher limit.", "Envoyez-en une partie, ou demandez-nous une limite plus élevée."})
	_ = refusalOfRule("quiet_hours", intake.RefuseQuiet, onBatches, retryNo,
		words{"The batch would wait for the end of the quiet hours, and expire_at is before that.", "Le lot devrait attendre la fin des heures calmes, mais expire_at tombe avant."},
		words{"A later expire_at, or single messages.", "Donnez un expire_at plus tardif, ou envoyez des messages unitaires."})
	_ = refusalOfRule("no_test_number", intake.RefuseNoTestNumber, "sendSms", retryFixed,
		words{"Test mode has no verified number.", "Vous n’avez pas de numéro de test vérifié."},
		words{"PUT /v1/test-number, then verify.", "PUT /v1/test-number, puis confirmez le numéro."})
	_ = refusalOfRule("other_test_number", intake.RefuseOtherTestNumber, "sendSms", retryNo,
		words{"Another recipient than the test number.", "Le destinataire n’est pas le numéro de test."},
		words{"Send to the test number.", "Envoyez le message au numéro de test."})
	_ = refusalOfRule("test_quota", intake.RefuseTestQuota, "sendSms", retryNo,
		words{"The pool of test segments is used up. Those of failed messages come back.", "Le quota de test est épuisé. Les segments des messages en échec y sont recrédités."},
		words{"Go live.", "Passez en production."})
	_ = refusalOfRule("sandbox_quota", intake.RefuseSandboxQuota, "sendSms", retryNo,
		words{"1,000 messages to numbers of the sandbox within 24 hours.", "Vous avez envoyé 1 000 messages aux numéros du bac à sable en 24 heures."},
		words{"Continue tomorrow.", "Continuez demain."})

	// 400: the test number.

	verifiedAlready = newRefusal(400, "test_number_verified", "This number is already your verified test number.", "putTestNumber", retryNo,
		words{"The number is verified already.", "Le numéro est déjà vérifié."},
		words{"–", "–"})
	noReplacements = newRefusal(400, "test_number_final", "The test number cannot be replaced any more.", "putTestNumber", retryNo,
		words{"It was replaced as often as allowed.", "Il a déjà été remplacé le nombre maximal de fois."},
		words{"Keep the number; go live.", "Gardez le numéro ; passez en production."})
	codeWrong = newRefusal(400, "code_wrong", "The code is not right.", "verifyTestNumber", retryNo,
		words{"It is not the last code that was sent.", "Ce n’est pas le dernier code envoyé."},
		words{"Type it again; five tries.", "Saisissez-le de nouveau ; cinq tentatives au plus."})
	codeNone = newRefusal(400, "code_none", "There is no code to confirm. Ask for a new one.", "verifyTestNumber", retryNo,
		words{"None was sent, or it was used.", "Aucun code n’a été envoyé, ou il a déjà servi."},
		words{"PUT /v1/test-number.", "PUT /v1/test-number."})
	codeExpired = newRefusal(400, "code_expired", "The code has expired. Ask for a new one.", "verifyTestNumber", retryNo,
		words{"It is over 10 minutes old.", "Il a plus de 10 minutes."},
		words{"PUT /v1/test-number.", "PUT /v1/test-number."})
	codeTries = newRefusal(400, "code_tries", "The code was mistyped too often. Ask for a new one.", "verifyTestNumber", retryNo,
		words{"Five wrong tries.", "Cinq tentatives erronées."},
		words{"PUT /v1/test-number.", "PUT /v1/test-number."})

	// The request as a whole.

	malformedJSON = newRefusal(400, "malformed_json", "The request body is not valid JSON.", onBodies, retryNo,
		words{"A syntax error, invalid UTF-8, half a surrogate pair, or nested too deep.", "Une erreur de syntaxe, de l’UTF-8 invalide, une demi-paire de substitution, ou trop de niveaux d’imbrication."},
		words{"Encode the body with a JSON library.", "Produisez le corps avec une bibliothèque JSON."})
	keyInvalid = newRefusal(400, "idempotency_key_invalid", "The Idempotency-Key header is not valid.", onSends, retryNo,
		words{"It is not 1 to 255 visible ASCII characters, or there are two.", "L’en-tête ne contient pas une clé de 1 à 255 caractères ASCII visibles, ou il y en a deux."},
		words{"A UUID will do.", "Utilisez par exemple un UUID."})
	unauthenticatedCaller = newRefusal(401, "unauthenticated", "Unauthenticated.", onAll, retryFixed,
		words{"No token, or one that is mistyped, revoked or expired.", "La clé d’API est absente, mal écrite, révoquée ou expirée."},
		words{"Authorization: Bearer <API_TOKEN>.", "Authorization: Bearer <API_TOKEN>."})
	wrongNetwork = newRefusal(403, "token_network", "The API token must not be used from this network.", onAll, retryFixed,
		words{"The token has allowed networks, and the request comes from another address.", "La clé d’API n’est acceptée que depuis certains réseaux, et la requête vient d’une autre adresse."},
		words{"Send from an allowed network, or create a token with yours.", "Envoyez depuis un réseau autorisé, ou créez une clé avec le vôtre."})
	mayNotSend = newRefusal(403, "token_scope", "The API token does not have the scope send.", onChanges, retryFixed,
		words{"The token may only read.", "La clé d’API ne permet que la lecture."},
		words{"Create a token with the scope send.", "Créez une clé avec l’autorisation send."})
	mayNotRead = newRefusal(403, "token_scope", "The API token does not have the scope read.", onReads, retryFixed,
		words{"The token may only send.", "La clé d’API ne permet que l’envoi."},
		words{"Create a token with the scope read.", "Créez une clé avec l’autorisation read."})
	notFound = newRefusal(404, "not_found", "Not found.", onNamed, retryNo,
		words{"No such path, message, batch or delivery, or it is another company's.", "Ce chemin, ce message, ce lot ou cette livraison n’existe pas ou appartient à une autre entreprise."},
		words{"Check the address.", "Vérifiez l’adresse."})
	wrongMethod = newRefusal(405, "method_not_allowed", "Method not allowed.", "", retryNo,
		words{"The path has other methods.", "Le chemin accepte d’autres méthodes."},
		words{"See the Allow header.", "Consultez l’en-tête Allow."})
	tooSlow = newRefusal(408, "body_too_slow", "The request body took too long to arrive.", onBodies, retryAtOnce,
		words{"The connection is too slow, or it broke.", "La connexion est trop lente, ou a été coupée."},
		words{"Send smaller batches.", "Envoyez des lots plus petits."})
	keyInUse = newRefusal(409, "idempotency_key_in_use", "A request with this idempotency key is still being processed.", onSends, retryAtOnce,
		words{"The first request has not been answered yet.", "La première requête n’a pas encore reçu de réponse."},
		words{"Wait a moment and repeat it.", "Attendez un instant et répétez-la."})
	tooLarge = newRefusal(413, "body_too_large", "The request body is too large.", onBodies, retryNo,
		words{"It is over 16 MiB.", "Il dépasse 16 Mio."},
		words{"At most 500 recipients a request.", "Envoyez à 500 destinataires au plus par requête."})
	notJSON = newRefusal(415, "content_type_invalid", "The Content-Type must be application/json.", onBodies, retryNo,
		words{"The body is declared as another type.", "L’en-tête Content-Type indique un autre type."},
		words{"Content-Type: application/json.", "Content-Type: application/json."})
)
