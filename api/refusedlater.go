package api

// Temporary refusals: the client may try again.
var (
	tooManySends = newRefusal(429, "too_many_requests", "Too Many Attempts.", onPaid, retryLater,
		words{"Too many send requests in this window.", "Trop de requêtes d’envoi dans cette fenêtre."},
		words{"Wait for Retry-After seconds.", "Attendez le nombre de secondes de Retry-After."})
	tooManyLookups = newRefusal(429, "too_many_lookups", "Too Many Attempts.", onLooks, retryLater,
		words{"You have too many look-ups in progress at the same time.",
			"Vous avez trop de consultations en cours en même temps."},
		words{"Make them one after the other.", "Faites-les l’une après l’autre."})
	tooManyWaiting = newRefusal(429, "too_many_waiting", "Too many requests wait for events.", "listEvents", retryLater,
		words{"Four requests with this API key, or twenty of your company, are already waiting.",
			"Quatre requêtes avec cette clé d’API, ou vingt de votre entreprise, sont déjà en attente."},
		words{"Wait for their responses. Use one consumer for each key.",
			"Attendez leurs réponses ; utilisez un seul consommateur par clé."})
	tooManyFailures = newRefusal(429, "too_many_failed_logins", "Too Many Attempts.", onAll, retryLater,
		words{"Your address has sent too many wrong API keys.", "Votre adresse a envoyé trop de clés d’API erronées."},
		words{"Correct the API key, then wait for Retry-After seconds.",
			"Corrigez la clé d’API, puis attendez le nombre de secondes de Retry-After."})
	codeTooSoon = newRefusal(429, "code_too_soon", "Too Many Attempts.", "putTestNumber", retryLater,
		words{"A code was sent less than a minute ago, or five within the hour.",
			"Un code a été envoyé il y a moins d’une minute, ou cinq en une heure."},
		words{"Wait for Retry-After seconds.", "Attendez le nombre de secondes de Retry-After."})
	codeLimit = newRefusal(429, "code_limit", "Too many one-time codes were sent today.", "putTestNumber", retryLater,
		words{"Your company’s daily limit is reached, or the daily limit of free codes. Codes are free for companies that " +
			"are not approved or have no credits.", "La limite quotidienne de votre entreprise, ou celle des codes gratuits, " +
			"est atteinte. Les codes sont gratuits pour les entreprises sans approbation ou sans crédits."},
		words{"Wait for Retry-After seconds.", "Attendez le nombre de secondes de Retry-After."})
	serverError = newRefusal(500, "server_error", "Server error.", onAll, retryAtOnce,
		words{"An error on our side. Our log has it under the X-Request-Id of the response.",
			"Une erreur de notre part, enregistrée dans notre journal sous le X-Request-Id de la réponse."},
		words{"Repeat the request with the same Idempotency-Key.", "Répétez la requête avec la même Idempotency-Key."})
	unavailable = newRefusal(503, "unavailable", "Service unavailable.", onAll, retryLater,
		words{"We cannot accept requests at the moment. Nothing was queued or charged.",
			"Nous ne pouvons pas accepter de requêtes en ce moment. Rien n’a été mis en file d’attente ni prélevé."},
		words{"Repeat the request with the same Idempotency-Key.", "Répétez la requête avec la même Idempotency-Key."})
	outcomeUnknown = newRefusal(503, "outcome_unknown", unavailable.text, onPaid+" putTestNumber", retryLater,
		words{"The outcome of the request is not known yet. It may have been accepted and charged.",
			"Le résultat de la requête n’est pas encore connu. Elle a peut-être été acceptée, et ses crédits prélevés."},
		words{
			"Repeat the request with the same Idempotency-Key until you get something other than 503. Without a key, look " +
				"it up before you send again.", "Répétez la requête avec la même Idempotency-Key tant qu’elle renvoie 503 ; sans " +
				"cette clé, consultez les messages avant de la renvoyer."})
)
