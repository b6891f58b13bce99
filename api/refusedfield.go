package api

// Invalid fields and parameters: 422.
var (
	// 422: single messages, previews, the test number (rule api 7.1).

	numberRequired = newInvalid("phone_number_required", "phone_number", "The phone number is required.",
		"sendSms createVerification putTestNumber addOptOuts createContact",
		words{"phone_number is missing, null or blank.", "phone_number est absent, null ou vide."},
		words{"Give one.", "Donnez-en un."})
	numberInvalid = newInvalid("phone_number_invalid", "phone_number",
		"The phone number must be a valid Burundi (+257) number.",
		"sendSms createVerification putTestNumber listSms listBatchMessages addOptOuts listInbound listOptOuts removeOptOut "+
			"listContacts "+onContactEdits,
		words{"It is not a Burundi mobile number.", "Ce n’est pas un numéro mobile du Burundi."},
		words{"Give +257 and 8 digits, or 8 digits.", "Donnez +257 et 8 chiffres, ou 8 chiffres."})
	senderRequired = newInvalid("sender_required", "sender", "The sender is required.", "sendSms createVerification",
		words{"sender is missing, null or blank.", "sender est absent, null ou vide."},
		words{"Give one.", "Donnez-en un."})
	senderInvalid = newInvalid("sender_invalid", "sender", "The sender must be 1-11 alphanumeric characters.",
		onPaid+" addOptOuts listOptOuts removeOptOut",
		words{"It has other characters or spaces, or is too long.",
			"Il contient d’autres caractères ou des espaces, ou il est trop long."},
		words{"Use only ASCII letters and digits.", "Utilisez seulement des lettres et des chiffres ASCII."})
	messageRequired = newInvalid("message_required", "message", "The message content is required.", "sendSms previewSms",
		words{"message is missing, null, blank or not a string.",
			"message est absent, null ou vide, ou n’est pas une chaîne."},
		words{"Give one.", "Donnez-en un."})
	messageLong = newInvalid("message_too_long", "message", "The message must not exceed 600 characters.",
		"sendSms previewSms",
		words{"The length is counted in Unicode code points.", "La longueur se compte en points de code Unicode."},
		words{"Shorten it, or send two.", "Raccourcissez-le, ou envoyez-en deux."})
	referenceWrong = wrongLabel{
		newInvalid("client_reference_not_a_string", "client_reference", "The client_reference must be a string.",
			"sendSms createVerification",
			words{"It is a number, a list or an object.", "C’est un nombre, une liste ou un objet."},
			words{"Quote it; leave it out for none.", "Mettez la valeur entre guillemets ; omettez le champ si vous " +
				"n’avez pas " +
				"de référence."}),
		newInvalid("client_reference_too_long", "client_reference", "The client_reference must not exceed 64 characters.",
			"sendSms createVerification listSms",
			words{"The length is counted in Unicode code points.", "La longueur se compte en points de code Unicode."},
			words{"Shorten it.", "Raccourcissez-la."}),
		newInvalid("client_reference_invalid", "client_reference",
			"The client_reference must contain printable characters only.", "sendSms createVerification listSms",
			words{"It has a line break, or another invisible character.",
				"La référence contient un saut de ligne ou un autre caractère invisible."},
			words{"Use letters, marks, digits, punctuation, symbols and spaces.",
				"Utilisez des lettres, signes diacritiques, chiffres, signes de ponctuation, symboles et espaces."}),
	}
	costCenterWrong = wrongLabel{
		newInvalid("cost_center_not_a_string", "cost_center", "The cost_center must be a string.", onSends,
			words{"It is a number, a list or an object.", "C’est un nombre, une liste ou un objet."},
			words{"Quote it; leave it out for none.", "Mettez la valeur entre guillemets ; omettez le champ si vous " +
				"n’avez pas " +
				"de centre de coûts."}),
		newInvalid("cost_center_too_long", "cost_center", "The cost_center must not exceed 64 characters.",
			onSends+" listSms",
			words{"The length is counted in Unicode code points.", "La longueur se compte en points de code Unicode."},
			words{"Shorten it.", "Raccourcissez-le."}),
		newInvalid("cost_center_invalid", "cost_center", "The cost_center must contain printable characters only.",
			onSends+" listSms",
			words{"It has a line break, or another invisible character.",
				"Il contient un saut de ligne ou un autre caractère invisible."},
			words{"Use letters, marks, digits, punctuation, symbols and spaces.",
				"Utilisez des lettres, signes diacritiques, chiffres, signes de ponctuation, symboles et espaces."}),
	}
	sendAtInvalid = newInvalid("send_at_invalid", "send_at",
		"The send_at must be a date and time such as 2026-03-01T10:00:00+02:00.", onSends,
		words{"It is not an RFC 3339 time with an offset.",
			"Ce n’est pas une date avec heure et décalage, au format RFC 3339."},
		words{"Give an RFC 3339 time with an offset.", "Donnez une heure RFC 3339 avec décalage."})
	sendAtPast = newInvalid("send_at_past", "send_at", "The send_at must not be in the past.", onSends,
		words{"It was over a minute ago.", "L’heure est passée depuis plus d’une minute."},
		words{"Leave it out to send at once.", "Omettez ce champ pour envoyer aussitôt."})
	sendAtFar = newInvalid("send_at_too_far", "send_at", "The send_at must be at most 30 days ahead.", onSends,
		words{"It is too far in the future.", "L’heure est trop lointaine."},
		words{"Send the request later.", "Envoyez la requête plus tard."})
	expireAtInvalid = newInvalid("expire_at_invalid", "expire_at",
		"The expire_at must be a date and time such as 2026-03-01T10:00:00+02:00.", onSends,
		words{"It is not an RFC 3339 time with an offset.",
			"Ce n’est pas une date avec heure et décalage, au format RFC 3339."},
		words{"Give an RFC 3339 time with an offset.", "Donnez une heure RFC 3339 avec décalage."})
	expireAtEarly = newInvalid("expire_at_too_early", "expire_at", "The expire_at must be after the time of sending.",
		onSends,
		words{"It is not after send_at, or not after now.", "L’heure n’est pas postérieure à send_at, ou est déjà passée."},
		words{"Give a later time, or none.", "Donnez une heure plus tardive, ou aucune."})
	expireAtFar = newInvalid("expire_at_too_far", "expire_at",
		"The expire_at must be at most 3 days after the time of sending.", onSends,
		words{"Carriers do not try for so long.", "L’heure est trop lointaine : les opérateurs n’essaient pas " +
			"aussi longtemps."},
		words{"Give an earlier time, or none.", "Donnez une heure moins lointaine, ou aucune."})
	codeRequired = newInvalid("code_required", "code", "The code is required.", "verifyTestNumber checkVerification",
		words{"The code is missing.", "Le code est absent."},
		words{"Give it.", "Donnez-le."})
	codeInvalid = newInvalid("code_invalid", "code", "The code must be 6 digits.", "verifyTestNumber",
		words{"The code of the test number does not have six digits.", "Le code du numéro de test n’a pas six chiffres."},
		words{"Type it as in the SMS.", "Saisissez-le comme dans le SMS."})

	// 422: bulk and template (rule api 7.1). The message is textInvalid, the code is the first field's.

	_ = newRefusal(422, "", textInvalid, "", retryNo,
		words{"A batch is not valid; errors has the fields, and X-Error-Code is that of the first.",
			"Un lot n’est pas valide ; errors donne les champs, et X-Error-Code est celui du premier."},
		words{"Read errors.", "Lisez errors."})
	senderFieldRequired = newInvalid("sender_required", "sender", "The sender field is required.", onBatches,
		words{"The batch has no sender.", "Le lot n’a pas d’expéditeur."},
		words{"Give one.", "Donnez-en un."})
	messagesEmpty = newInvalid("messages_empty", "messages", "The messages field must contain at least one item.",
		"sendBulk",
		words{"messages is missing, empty or not a list.", "messages est absent ou vide, ou n’est pas une liste."},
		words{"Give 1 to 500 messages.", "Donnez de 1 à 500 messages."})
	messagesMany = newInvalid("messages_too_many", "messages", "The messages field must not contain more than 500 items.",
		"sendBulk",
		words{"There are too many.", "Il y en a trop."},
		words{"Send several batches.", "Envoyez plusieurs lots."})
	ofMessages          = newOfItems("messages", "sendBulk")
	itemMessageRequired = newInvalidItem("message_required", "messages.N.message", endRequired, "sendBulk",
		words{"It is missing, blank or not a string.", "Le texte est absent ou vide, ou n’est pas une chaîne."},
		words{"Give one.", "Donnez-en un."})
	itemMessageLong = newInvalidItem("message_too_long", "messages.N.message", endMessageLong, "sendBulk",
		words{"It is too long.", "Le texte est trop long."},
		words{"Shorten it.", "Raccourcissez-le."})
	templateRequired = newInvalid("template_required", "template", "The template field is required.",
		"sendTemplate previewSms",
		words{"template is missing, blank or not a string.", "template est absent ou vide, ou n’est pas une chaîne."},
		words{"Give one.", "Donnez-en un."})
	templateLong = newInvalid("template_too_long", "template", "The template field must not exceed 600 characters.",
		"sendTemplate previewSms",
		words{"The length is counted before rendering.", "La longueur se compte avant le remplacement des champs."},
		words{"Shorten it.", "Raccourcissez-le."})
	recipientsEmpty = newInvalid("recipients_empty", "recipients", "The recipients field must contain at least one item.",
		"sendTemplate",
		words{"recipients is missing, empty or not a list.", "recipients est absent ou vide, ou n’est pas une liste."},
		words{"Give 1 to 500 recipients.", "Donnez de 1 à 500 destinataires."})
	recipientsMany = newInvalid("recipients_too_many", "recipients",
		"The recipients field must not contain more than 500 items.", "sendTemplate",
		words{"There are too many.", "Il y en a trop."},
		words{"Send several batches.", "Envoyez plusieurs lots."})
	ofRecipients               = newOfItems("recipients", "sendTemplate")
	recipientVariablesRequired = newInvalidItem("variables_required", "recipients.N.variables", endRequired,
		"sendTemplate",
		words{"It is missing, null or not an object; {} is valid.",
			"variables est absent ou null, ou n’est pas un objet ; {} convient."},
		words{"Give an object.", "Donnez un objet."})
	recipientVariableLong = newInvalidItem("variable_too_long", "recipients.N.variables.K", endVariableLong,
		"sendTemplate",
		words{"The value is too long.", "La valeur est trop longue."},
		words{"Shorten it.", "Raccourcissez-la."})
	recipientVariableText = newInvalidItem("variable_not_a_string", "recipients.N.variables.K", endText, "sendTemplate",
		words{"The value is a number, a list or an object.", "La valeur est un nombre, une liste ou un objet."},
		words{"Quote it, or give null.", "Mettez-la entre guillemets, ou donnez null."})
	moreFields = newInvalid("", moreKey, "There are N further fields that are not listed.", onBatches,
		words{"More than 2,000 fields are wrong; the key more has this text.",
			"Plus de 2 000 champs sont incorrects ; ce texte, sous la clé more, donne le nombre de ceux qui ne sont " +
				"pas indiqués."},
		words{"Correct what is listed first.", "Corrigez d’abord les champs indiqués."})
	variablesRequired = newInvalidItem("variables_required", "variables", endRequired, "previewSms",
		words{"Preview: variables is not an object.", "Aperçu : variables n’est pas un objet."},
		words{"Give an object.", "Donnez un objet."})
	variableLong = newInvalidItem("variable_too_long", "variables.K", endVariableLong, "previewSms",
		words{"Preview: the value is too long.", "Aperçu : la valeur est trop longue."},
		words{"Shorten it.", "Raccourcissez-la."})
	variableText = newInvalidItem("variable_not_a_string", "variables.K", endText, "previewSms",
		words{"Preview: the value is not a string.", "Aperçu : la valeur n’est pas une chaîne."},
		words{"Quote it.", "Mettez-la entre guillemets."})
	keyReused = newRefusal(422, "idempotency_key_reused", "The idempotency key was already used with a different request.",
		onPaid, retryNo,
		words{"The same key was used with another body or endpoint within the last 24 hours.",
			"La même clé d’idempotence a servi, au cours des dernières 24 heures, pour un autre corps ou un autre point de " +
				"terminaison."},
		words{"Give each new request a new key.", "Donnez une nouvelle clé d’idempotence à chaque nouvelle requête."})

	// 422: opt-outs.

	optOutsEmpty = newInvalid("opt_outs_empty", "opt_outs", "The opt_outs field must contain at least one item.",
		"addOptOuts",
		words{"opt_outs is empty or not a list.", "opt_outs est vide ou n’est pas une liste."},
		words{"Give 1 to 500 entries.", "Donnez de 1 à 500 entrées."})
	optOutsMany = newInvalid("opt_outs_too_many", "opt_outs", "The opt_outs field must not contain more than 500 items.",
		"addOptOuts",
		words{"There are too many.", "Il y en a trop."},
		words{"Send several requests.", "Envoyez plusieurs requêtes."})
	ofOptOuts           = newOfEntries("opt_outs", "addOptOuts")
	optOutSenderInvalid = newInvalidItem("sender_invalid", "opt_outs.N.sender", endSender, "addOptOuts",
		words{"It has other characters or spaces, or is too long.",
			"Il contient d’autres caractères ou des espaces, ou il est trop long."},
		words{"Use only ASCII letters and digits, or null.",
			"Utilisez seulement des lettres et des chiffres ASCII, ou null."})

	// 422: lists and look-ups.

	statusInvalid = newInvalid("status_invalid", "status", "The status must be pending, sent or failed.",
		"listSms listBatchMessages",
		words{"Unknown status.", "État inconnu."},
		words{"Give one of the three.", "Choisissez l’un des trois."})
	batchInvalid = newInvalid("batch_id_invalid", "batch_id", "The batch_id must be a ULID.", "listSms",
		words{"It is not a ULID.", "Ce n’est pas un ULID."},
		words{"Give the batch_id of the send result.", "Donnez le batch_id de la réponse à l’envoi."})
	fromInvalid = newInvalid("from_invalid", "from", "The from must be a date and time such as 2026-03-01T10:00:00+02:00.",
		"listSms listInbound",
		words{"It is not a time.", "Ce n’est pas une date valide."},
		words{"Give an RFC 3339 time.", "Donnez une date RFC 3339."})
	toInvalid = newInvalid("to_invalid", "to", "The to must be a date and time such as 2026-03-01T10:00:00+02:00.",
		"listSms listInbound",
		words{"It is not a time.", "Ce n’est pas une date valide."},
		words{"Give an RFC 3339 time.", "Donnez une date RFC 3339."})
	limitInvalid = newInvalid("limit_invalid", "limit", "The limit must be between 1 and 100.", onLists,
		words{"It is out of bounds.", "La valeur est hors limites."},
		words{"Give 1 to 100.", "Donnez une valeur de 1 à 100."})
	cursorInvalid = newInvalid("cursor_invalid", "cursor", "The cursor is not valid.", onLists,
		words{"It is not a cursor of this list.", "Ce n’est pas un curseur de cette liste."},
		words{"Give the next_cursor of the previous page, with the same filters.",
			"Donnez le next_cursor de la page précédente, avec les mêmes filtres."})
	eventLimitInvalid = newInvalid("limit_invalid", "limit", "The limit must be between 1 and 500.", "listEvents",
		words{"It is out of bounds.", "La valeur est hors limites."},
		words{"Give 1 to 500.", "Donnez une valeur de 1 à 500."})
	waitInvalid = newInvalid("wait_invalid", "wait", "The wait must be between 0 and 30.", "listEvents",
		words{"It is not a whole number of seconds, or is out of bounds.",
			"Ce n’est pas un nombre entier de secondes, ou la valeur est hors limites."},
		words{"Give 0 to 30 seconds.", "Donnez une valeur de 0 à 30 secondes."})
	afterInvalid = newInvalid("after_invalid", "after", "The after must be a next_cursor of these events.", "listEvents",
		words{"It is not a cursor of your company's events.", "Ce n’est pas un curseur des événements de votre entreprise."},
		words{"Give the next_cursor of an earlier response, or leave it out to begin with the oldest event.",
			"Donnez le next_cursor d’une réponse précédente, ou omettez ce paramètre pour commencer par l’événement le " +
				"plus ancien."})
	stateInvalid = newInvalid("state_invalid", "state", "The state must be pending, delivered or failed.",
		"listWebhookDeliveries",
		words{"Unknown state of a delivery.", "État de livraison inconnu."},
		words{"Give one of the three.", "Choisissez l’un des trois."})
	eventInvalid = newInvalid("event_invalid", "event",
		"The event must be sms.sent, sms.failed, sms.received, balance.low, batch.finished or verification.finished.",
		"listWebhookDeliveries",
		words{"Unknown event.", "Événement inconnu."},
		words{"Give one of these six.", "Donnez l’un de ces six noms."})
	messageIDInvalid = newInvalid("message_id_invalid", "message_id",
		"The message_id must be a whole number above 0 or a ULID.", "listWebhookDeliveries",
		words{"It is neither of the two ids of a message.", "Ce n’est ni l’un ni l’autre des identifiants d’un message."},
		words{"Give the message_id of the webhook, or the id of the send result.",
			"Donnez le message_id du webhook, ou l’id de la réponse à l’envoi."})
	sinceInvalid = newInvalid("since_invalid", "since",
		"The since must be a date and time such as 2026-03-01T10:00:00+02:00.", "listWebhookDeliveries",
		words{"It is not a time.", "Ce n’est pas une date valide."},
		words{"Give an RFC 3339 time.", "Donnez une date RFC 3339."})
	usageFromRequired = newInvalidItem("from_required", "from", endRequired, "getUsage",
		words{"The first day is missing.", "Le premier jour manque."},
		words{"Give the first day.", "Donnez le premier jour."})
	usageToRequired = newInvalidItem("to_required", "to", endRequired, "getUsage",
		words{"The last day is missing.", "Le dernier jour manque."},
		words{"Give the last day.", "Donnez le dernier jour."})
	usageFromInvalid = newInvalid("from_invalid", "from", "The from must be a day such as 2026-03-01.", "getUsage",
		words{"It is not a day.", "Ce n’est pas un jour."},
		words{"Give year, month and day, without a time.", "Donnez l’année, le mois et le jour, sans heure."})
	usageToInvalid = newInvalid("to_invalid", "to", "The to must be a day such as 2026-03-31.", "getUsage",
		words{"It is not a day.", "Ce n’est pas un jour."},
		words{"Give year, month and day, without a time.", "Donnez l’année, le mois et le jour, sans heure."})
	usagePeriodInvalid = newInvalid("period_invalid", "to",
		"The to must not be before the from, and the period must not exceed 400 days.", "getUsage",
		words{"The days are in the wrong order, or the period is too long.",
			"Les jours sont dans le mauvais ordre, ou la période est trop longue."},
		words{"Correct the days, or ask for a year at a time.", "Corrigez les jours, ou demandez une année à la fois."})
	usageByInvalid = newInvalid("by_invalid", "by", "The by must be day or month, and may add carrier, sender and "+
		"cost_center, separated by commas.", "getUsage",
		words{"It has neither day nor month, or both, another word, or one twice.",
			"Il ne contient ni day ni month, ou les deux, ou un autre mot, ou un mot deux fois."},
		words{"For example by=month,sender.", "Par exemple by=month,sender."})
	usageTooLong = newInvalid("too_many_rows", "by", "The report has more than 10000 rows. Ask for fewer days or fewer "+
		"properties.", "getUsage",
		words{"The days, senders and cost centres give too many rows.",
			"Les jours, les expéditeurs et les centres de coûts donnent trop de lignes."},
		words{"Ask for one month, or leave out a property.", "Demandez un seul mois, ou retirez une propriété."})
	parameterUnknown = newInvalidItem("parameter_unknown", "K", endParameter, onAsked,
		words{"The look-up does not have this parameter; it may be mistyped.",
			"La consultation n’a pas ce paramètre ; il est peut-être mal écrit."},
		words{"See the parameters of the endpoint.", "Consultez les paramètres du point de terminaison."})
	parameterEmpty = newInvalidItem("parameter_empty", "K", endEmpty, onFiltered,
		words{"A filter without a value would filter nothing.", "Un filtre sans valeur ne filtrerait rien."},
		words{"Leave it out, or give a value.", "Omettez-le, ou donnez une valeur."})
	queryInvalid = newInvalid("query_invalid", "query", "The query string is not valid.", onAsked,
		words{"A percent sign or a semicolon is not escaped.", "Un signe % ou un point-virgule n’est pas échappé."},
		words{"Escape parameters with a URL library.", "Encodez les paramètres avec une bibliothèque d’URL."})
)

// ofItems are the refusals that the items of several lists share.
type ofItems struct {
	numberRequired, numberInvalid, misplaced *refusal
	reference                                wrongLabel
}

// newOfEntries is for a list with numbered items.
func newOfEntries(list string, on operations) ofItems {
	return ofItems{
		numberRequired: newInvalidItem("phone_number_required", list+".N.phone_number", endRequired, on,
			words{"Items are counted from 0.", "Les éléments sont comptés à partir de 0."},
			words{"Give one.", "Donnez-en un."}),
		numberInvalid: newInvalidItem("phone_number_invalid", list+".N.phone_number", endNumber, on,
			words{"It is not a Burundi mobile number.", "Ce n’est pas un numéro mobile du Burundi."},
			words{"Correct it or leave it out.", "Corrigez-le ou retirez-le."}),
	}
}

// newOfItems is for the list of a batch.
func newOfItems(list string, on operations) ofItems {
	of := newOfEntries(list, on)
	of.reference = wrongLabel{
		newInvalidItem("client_reference_not_a_string", list+".N.client_reference", endText, on,
			words{"It is a number, a list or an object.", "C’est un nombre, une liste ou un objet."},
			words{"Quote it.", "Mettez-la entre guillemets."}),
		newInvalidItem("client_reference_too_long", list+".N.client_reference", endReferenceToo, on,
			words{"It is too long.", "Elle est trop longue."},
			words{"Shorten it.", "Raccourcissez-la."}),
		newInvalidItem("client_reference_invalid", list+".N.client_reference", endReference, on,
			words{"It has a line break, or another invisible character.",
				"La référence contient un saut de ligne ou un autre caractère invisible."},
			words{"Use letters, marks, digits, punctuation, symbols and spaces.",
				"Utilisez des lettres, signes diacritiques, chiffres, signes de ponctuation, symboles et espaces."}),
	}
	of.misplaced = newInvalidItem("field_misplaced", list+".N.K", endWhole, on,
		words{"An item has its own send_at, expire_at or cost_center. Its other unknown fields are ignored, " +
			"including a sender.", "Un élément a son propre send_at, expire_at ou cost_center. Ses autres champs " +
			"inconnus sont " +
			"ignorés, y compris sender."},
		words{"Give it once, beside the list; or send two batches.",
			"Donnez-le une seule fois, à côté de la liste, ou envoyez deux lots."})
	return of
}
