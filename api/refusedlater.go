package api

// Temporary refusals: the client may try again.
var (
	tooManySends = newRefusal(429, "too_many_requests", "Too Many Attempts.", onSends, retryLater,
		words{"Too many send requests in this window.", "Trop de requêtes d’envoi dans cette fenêtre."},
		words{"Wait for Retry-After seconds.", "Attendez le nombre de secondes de Retry-After."})
	tooManyLookups = newRefusal(429, "too_many_lookups", "Too Many Attempts.", onLooks, retryLater,
		words{"Too many of your look-ups are under way at the same time.", "Trop de vos consultations sont en cours en même temps."},
		words{"Send one after the other.", "Envoyez-les l’une après l’autre."})
	tooManyFailures = newRefusal(429, "too_many_failed_logins", "Too Many Attempts.", onAll, retryLater,
		words{"Too many wrong tokens came from your address.", "Trop de clés d’API erronées sont venues de votre adresse."},
		words{"Correct the token, then wait for Retry-After seconds.", "Corrigez la clé d’API, puis attendez le nombre de secondes de Retry-After."})
	codeTooSoon = newRefusal(429, "code_too_soon", "Too Many Attempts.", "putTestNumber", retryLater,
		words{"A code was sent less than a minute ago, or five within the hour.", "Un code est parti il y a moins d’une minute, ou cinq en une heure."},
		words{"Wait for Retry-After seconds.", "Attendez le nombre de secondes de Retry-After."})
	serverError = newRefusal(500, "server_error", "Server error.", onAll, retryAtOnce,
		words{"A fault of ours; our log has it under the X-Request-Id of the answer.", "Une erreur de notre part ; notre journal l’a sous le X-Request-Id de la réponse."},
		words{"Repeat with the same Idempotency-Key.", "Répétez avec le même Idempotency-Key."})
	unavailable = newRefusal(503, "unavailable", "Service unavailable.", onAll, retryLater,
		words{"We cannot take requests just now. This request queued nothing and charged nothing.", "Nous ne pouvons pas accepter de requêtes en ce moment. Cette requête n’a rien mis en file et rien prélevé."},
		words{"Repeat with the same Idempotency-Key.", "Répétez avec le même Idempotency-Key."})
	outcomeUnknown = newRefusal(503, "outcome_unknown", unavailable.text, onSends+" putTestNumber", retryLater,
		words{"The outcome of the request is not known yet. It may have been accepted and charged.", "L’issue de la requête n’est pas encore connue. Elle a peut-être été acceptée et payée."},
		words{"Repeat with the same Idempotency-Key until the answer is not a 503; without a key, look it up before you send it again.", "Répétez avec le même Idempotency-Key tant que la réponse est 503 ; sans clé, consultez les messages avant de renvoyer."})
)
