// Package statuses is the table of command_status that the SMPP server answers with. The server takes its answers from
// it, and the page for customers' engineers shows it.
package statuses

import "intumwa/smpp"

// The statuses of our own (SMPP 3.4, 5.1.3: 0x400 to 0x4FF). Programs like Kannel do not repeat a message that was
// refused with one; they do after ESME_RMSGQFUL and ESME_RTHROTTLED.
const (
	NoCompany    smpp.Status = 0x400
	NotApproved  smpp.Status = 0x401
	NotVerified  smpp.Status = 0x402
	OptedOut     smpp.Status = 0x403
	DailyCap     smpp.Status = 0x404
	TooSoon      smpp.Status = 0x405 // the same text to the same number within the interval
	TooOften     smpp.Status = 0x406 // the same text to the same number, on a day
	NumberLimit  smpp.Status = 0x407 // messages to a number, on a day
	NotAtCarrier smpp.Status = 0x408 // the sender is not registered at the number's carrier
	NoCredits    smpp.Status = 0x40B

	MultiFailed smpp.Status = 0x44 // ESME_RCNTSUBDL
	InvTLV      smpp.Status = 0xC4 // ESME_RINVOPTPARAMVAL
)

// Row is a status with what it means, for a customer's engineer.
type Row struct {
	Status  smpp.Status
	Again   bool     // the same request may succeed later, unchanged
	Reasons []string // of intake's refusals that are answered with it
	EN, FR  string
}

// Binds are the answers to bind_transmitter, bind_receiver and bind_transceiver.
var Binds = []Row{
	{smpp.StatusAlreadyBound, true, nil,
		"The key has its full number of sessions, or this session is bound already. The " +
			"other sessions continue.",
		"La clé a déjà toutes ses sessions, ou cette session est déjà liée. Les autres sessions restent ouvertes."},
	{smpp.StatusSysErr, true, nil, "We cannot check the login at the moment.",
		"Nous ne pouvons pas vérifier les identifiants pour l’instant."},
	{smpp.StatusBindFailed, false, nil, "Your address is in none of the key’s networks.",
		"Votre adresse n’est dans aucun réseau de la clé."},
	{smpp.StatusInvPassword, false, nil, "Wrong system_id or password, or the key is revoked or has expired.",
		"system_id ou mot de passe incorrect, ou clé révoquée ou expirée."},
	{smpp.StatusThrottled, true, nil, "Too many binds or wrong logins from your address.",
		"Trop de connexions ou d’identifiants incorrects depuis votre adresse."},
}

// Requests are the answers to all other requests.
var Requests = []Row{
	{smpp.StatusInvMsgLen, false, []string{"too_long"},
		"The text is empty or too long, or a part does not fit into one segment.",
		"Le texte est vide ou trop long, ou une partie dépasse un segment."},
	{smpp.StatusInvCmdLen, false, nil, "The PDU ends before its last field, or a length in it is wrong.",
		"La PDU s’arrête avant son dernier champ, ou l’une de ses longueurs est fausse."},
	{smpp.StatusInvCmdID, false, nil, "We do not know the command (generic_nack).", "Commande inconnue (generic_nack)."},
	{smpp.StatusInvBindState, false, nil, "The session is not bound, or is bound as receiver, or its key has just " +
		"been revoked.",
		"La session n’est pas liée, l’est en receiver, ou sa clé vient d’être révoquée."},
	{smpp.StatusSysErr, true, nil, "An error on our side.", "Erreur de notre côté."},
	{smpp.StatusInvSrcAddr, false, []string{"sender_not_found", "sender_not_approved", "test_sender", "country"},
		"The source_addr is not an approved sender of the company, or is for another country than the number.",
		"source_addr n’est pas un expéditeur approuvé de l’entreprise, ou son pays n’est pas celui du numéro."},
	{smpp.StatusInvDstAddr, false, []string{"no_carrier"},
		"No carrier serves the destination_addr, or it is not a mobile number of Burundi.",
		"Aucun opérateur ne dessert destination_addr, ou ce n’est pas un numéro mobile du Burundi."},
	{smpp.StatusInvMessageID, false, nil, "query_sm: the company has no message with this id and sender.",
		"query_sm : l’entreprise n’a aucun message avec cet id et cet expéditeur."},
	{smpp.StatusCancelFailed, false, nil, "cancel_sm: there is no such message, or a carrier has it, or it is final.",
		"cancel_sm : le message n’existe pas, un opérateur l’a déjà, ou il est terminé."},
	{smpp.StatusReplaceFailed, false, nil, "replace_sm is not supported.", "replace_sm n’est pas accepté."},
	{smpp.StatusMsgQueueFull, true, nil,
		"We cannot accept messages at the moment, or your unanswered requests have more " +
			"than 1 MiB. Nothing was charged.",
		"Nous ne pouvons pas accepter de messages pour l’instant, ou vos requêtes sans réponse dépassent 1 Mio. Rien " +
			"n’est facturé."},
	{smpp.StatusInvESMClass, false, nil, "The esm_class marks a receipt, or the UDH is incomplete or has more than the " +
		"number of a part.",
		"esm_class annonce un accusé, ou son UDH est incomplet ou contient autre chose que le numéro d’une partie."},
	{MultiFailed, false, nil, "submit_multi is not supported.", "submit_multi n’est pas accepté."},
	{smpp.StatusSubmitFailed, false, nil, "The text contains the character U+0000.",
		"Le texte contient le caractère U+0000."},
	{smpp.StatusInvReplaceFlag, false, nil, "replace_if_present_flag is not 0.", "replace_if_present_flag n’est pas 0."},
	{smpp.StatusThrottled, true, nil, "Too many segments a second (a query_sm or cancel_sm is one), or more than twice " +
		"the window unanswered. The session stays open.",
		"Trop de segments par seconde (query_sm et cancel_sm comptent pour un), ou plus du double de la fenêtre sans " +
			"réponse. La session reste ouverte."},
	{smpp.StatusInvSchedule, false, nil, "The schedule_delivery_time cannot be read, or is more than 30 days ahead.",
		"schedule_delivery_time est illisible, ou à plus de 30 jours."},
	{smpp.StatusInvExpiry, false, nil, "The validity_period cannot be read, or has ended.",
		"validity_period est illisible, ou déjà écoulé."},
	{smpp.StatusQueryFailed, false, nil, "query_sm: the message is so old that we no longer keep it.",
		"query_sm : le message est trop ancien, nous ne le conservons plus."},
	{smpp.StatusInvDefaultMsg, false, nil, "sm_default_msg_id is not 0.", "sm_default_msg_id n’est pas 0."},
	{smpp.StatusInvOptStream, false, nil, "An optional parameter is cut short.", "Un paramètre optionnel est tronqué."},
	{InvTLV, false, nil, "The sar parameters are not complete, or number no part.",
		"Les paramètres sar sont incomplets, ou ne numérotent aucune partie."},
	{smpp.StatusInvDataCoding, false, nil,
		"The data_coding is unknown or means 8-bit data, or lacks characters of a part.",
		"data_coding est inconnu ou désigne des données binaires, ou ne permet pas certains caractères d’une partie."},
	{NoCompany, false, []string{"no_company"}, "The key’s user has no company.",
		"L’utilisateur de la clé n’a pas d’entreprise."},
	{NotApproved, false, []string{"company_not_approved"}, "The company is not approved.",
		"L’entreprise n’est pas approuvée."},
	{NotVerified, false, []string{"company_not_verified"}, "The company is not verified.",
		"L’entreprise n’est pas vérifiée."},
	{OptedOut, false, []string{"opted_out"}, "The recipient has opted out of messages from this sender.",
		"Le destinataire s’est désinscrit de cet expéditeur."},
	{DailyCap, false, []string{"daily_cap", "sandbox_quota"},
		"The company has used up its credits for the day, or the key’s user the 1,000 sandbox messages of 24 hours.",
		"L’entreprise a épuisé ses crédits de la journée, ou l’utilisateur de la clé ses 1 000 messages du bac à sable " +
			"en 24 heures."},
	{TooSoon, false, []string{"repeated_too_soon"}, "The same text went to this number a short time ago.",
		"Le même texte est parti vers ce numéro il y a peu de temps."},
	{TooOften, false, []string{"repeated_too_often"},
		"The same text has gone to this number as often as is allowed in a day.",
		"Ce numéro a déjà reçu le même texte autant de fois que permis en un jour."},
	{NumberLimit, false, []string{"number_limit"}, "The number has received as many messages as is allowed in a day.",
		"Le numéro a reçu autant de messages que permis en un jour."},
	{NotAtCarrier, false, []string{"sender_not_registered"},
		"The sender is not yet registered with the carrier of this number. It may work at others.",
		"L’expéditeur n’est pas encore enregistré chez l’opérateur de ce numéro. Il peut fonctionner chez d’autres."},
	{NoCredits, false, []string{"insufficient_credits"}, "The company does not have enough credits.",
		"L’entreprise n’a pas assez de crédits."},
}

// Of returns the status of a reason of intake's refusals.
func Of(reason string) (smpp.Status, bool) {
	status, known := byReason[reason]
	return status, known
}

var byReason = func() map[string]smpp.Status {
	all := map[string]smpp.Status{}
	for _, row := range Requests {
		for _, reason := range row.Reasons {
			all[reason] = row.Status
		}
	}
	return all
}()
