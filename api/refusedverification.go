package api

// Refusals of verifications, and of reports on messages.
var (
	localeInvalid = newInvalid("locale_invalid", "locale", "The locale must be rn, fr, en or sw.", "createVerification",
		words{"There is no text in this language.", "Il n’existe pas de texte dans cette langue."},
		words{"Give one of the four; fr-FR and FR are accepted too. Without this field, the text is in French.",
			"Donnez l’une des quatre ; fr-FR et FR conviennent aussi. Sans ce champ, le texte est en français."})
	codeLengthInvalid = newInvalid("code_length_invalid", "code_length",
		"The code_length must be a whole number from 4 to 10.", "createVerification",
		words{"It is not a number, or is out of these bounds.", "Ce n’est pas un nombre, ou il est hors de ces limites."},
		words{"Leave it out for six digits.", "Omettez ce champ pour six chiffres."})
	ttlInvalid = newInvalid("ttl_invalid", "ttl", "The ttl must be a whole number from 60 to 3600.", "createVerification",
		words{"It is not a number of seconds, or is out of these bounds.",
			"Ce n’est pas un nombre de secondes, ou il est hors de ces limites."},
		words{"Leave it out for 600 seconds.", "Omettez ce champ pour 600 secondes."})
	amountInvalid = newInvalid("amount_invalid", "amount", "The amount must be 1-20 characters of the GSM alphabet.",
		"createVerification checkVerification",
		words{"It is too long, is not a string, or has a character that is not allowed: * { } @ #, a line break, or one " +
			"without a similar one in GSM-7.", "Il est trop long, n’est pas une chaîne, ou contient un caractère interdit : * " +
			"{ } @ #, un saut de ligne ou un caractère sans équivalent GSM-7."},
		words{"For example 25 000 FBu.", "Par exemple 25 000 FBu."})
	payeeInvalid = newInvalid("payee_invalid", "payee", "The payee must be 1-30 characters of the GSM alphabet.",
		"createVerification checkVerification",
		words{"It is too long, is not a string, or has a character that is not allowed: * { } @ #, a line break, or one " +
			"without a similar one in GSM-7.", "Il est trop long, n’est pas une chaîne, ou contient un caractère interdit : * " +
			"{ } @ #, un saut de ligne ou un caractère sans équivalent GSM-7."},
		words{"Shorten the name.", "Raccourcissez le nom."})
	paymentIncomplete = newInvalid("payment_incomplete", "payee", "The amount and the payee must be given together.",
		"createVerification",
		words{"One of the two is missing.", "L’un des deux manque."},
		words{"Give both, or neither.", "Donnez les deux, ou aucun."})
	paymentRequired = newInvalid("payment_required", "amount",
		"The amount and the payee of the verification are required.", "checkVerification",
		words{"The verification is for a payment: its check must repeat it. The code was not counted as wrong.",
			"La vérification porte sur un paiement : le contrôle doit le répéter. Le code n’est pas compté comme erroné."},
		words{"Give the amount and the payee that the person confirms.",
			"Donnez le montant et le bénéficiaire que la personne confirme."})
	appHashInvalid = newInvalid("app_hash_invalid", "app_hash", "The app_hash must be 11 characters of base64.",
		"createVerification",
		words{"It is not the hash of an Android app.", "Ce n’est pas l’empreinte d’une application Android."},
		words{"Compute it as Android's SMS Retriever does.", "Calculez-la comme le demande SMS Retriever d’Android."})
	webDomainInvalid = newInvalid("web_domain_invalid", "web_domain",
		"The web_domain must be a host name of at most 40 characters.", "createVerification",
		words{"It has a scheme, a port, a capital letter or no dot, or is too long.",
			"Il contient un protocole, un port, une majuscule, ou aucun point, ou il est trop long."},
		words{"For example shop.example.bi.", "Par exemple boutique.example.bi."})
	webDomainToo = newInvalid("web_domain_with_app_hash", "web_domain",
		"The web_domain and the app_hash cannot be given together.", "createVerification",
		words{"A text serves either an app or a page.", "Un texte sert soit à une application, soit à une page."},
		words{"Give the one where the person enters the code.", "Donnez celui où la personne saisit le code."})
	endUserInvalid = newInvalid("end_user_id_invalid", "end_user_id", "The end_user_id must be 1-64 printable characters.",
		"createVerification",
		words{"It is not a string, is too long, or has an invisible character.",
			"Ce n’est pas une chaîne, elle est trop longue, ou elle contient un caractère invisible."},
		words{"Your own id of the person, for example.", "Par exemple votre propre identifiant de la personne."})
	codeDigits = newInvalid("code_invalid", "code", "The code must be 4-10 digits.", "checkVerification",
		words{"It has other characters than digits, blanks and dashes, or is not a string. It was not counted as wrong.",
			"Il contient autre chose que des chiffres, des blancs et des tirets, ou n’est pas une chaîne. Il n’est pas compté " +
				"comme erroné."},
		words{"Pass on what the person typed, as a string.", "Transmettez ce que la personne a saisi, sous forme de chaîne."})
	convertedInvalid = newInvalid("converted_invalid", "converted", "The converted field must be true or false.",
		"sendFeedback",
		words{"It is missing, or neither.", "Il est absent, ou n’est ni l’un ni l’autre."},
		words{"true, if the person did what the message was for.",
			"true, si la personne a fait ce pour quoi le message était envoyé."})

	verificationLong = newRefusal(400, "verification_too_long", "The text of this verification does not fit one segment.",
		"createVerification", retryNo,
		words{"With the payment, the domain or the hash it is too long: 160 characters, and 140 bytes with an app_hash.",
			"Avec le paiement, le domaine ou l’empreinte, il est trop long : 160 caractères, et 140 octets avec app_hash."},
		words{"Shorten the payee or the domain.", "Raccourcissez le bénéficiaire ou le domaine."})
	verificationFinished = newRefusal(409, "verification_finished", "The verification is finished.",
		"checkVerification cancelVerification", retryNo,
		words{"It was approved or cancelled before.", "Elle a déjà été approuvée ou annulée."},
		words{"Look it up, or start another.", "Consultez-la, ou commencez-en une autre."})
	verificationChecks = newRefusal(429, "verification_checks", "Too Many Attempts.",
		"createVerification checkVerification cancelVerification", retryLater,
		words{
			"Five wrong codes were entered for this verification: until it expires, the number gets no other code. Or ten " +
				"were entered for the number within an hour.", "Cinq codes erronés ont été saisis pour cette vérification : " +
				"jusqu’à son expiration, le numéro n’en reçoit pas d’autre. Ou dix ont été saisis pour ce numéro en une heure."},
		words{"Wait for Retry-After seconds, then start another.",
			"Attendez le nombre de secondes de Retry-After, puis recommencez."})
	verificationLimit = newRefusal(429, "verification_limit", "Too Many Attempts.", "createVerification", retryLater,
		words{"A limit is reached: five messages of this verification; or, within an hour, 20 messages of your company to " +
			"the number or the end_user_id, 40 of all companies to the number, or your company’s own limit.",
			"Une limite est atteinte : cinq messages pour cette vérification ; ou, en une heure, 20 messages de votre " +
				"entreprise au numéro ou à end_user_id, 40 de toutes les entreprises au numéro, ou la limite propre à votre " +
				"entreprise."},
		words{"Wait for Retry-After seconds.", "Attendez le nombre de secondes de Retry-After."})
)
