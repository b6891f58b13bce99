package api

// What is temporary: the client may try again.
var (
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
		words{"We cannot take requests just now. This request queued nothing and charged nothing.", "Nous ne pouvons pas prendre de requêtes en ce moment. Cette requête n’a rien mis en file et rien débité."},
		words{"Repeat with the same Idempotency-Key.", "Répétez avec la même Idempotency-Key."})
	outcomeUnknown = newRefusal(503, "outcome_unknown", unavailable.text, onSends+" putTestNumber", retryLater,
		words{"We cannot find out now what became of the request. It may have been accepted, and charged.", "Nous ne pouvons pas savoir en ce moment ce qu’est devenue la requête. Elle a peut-être été acceptée, et débitée."},
		words{"Repeat with the same Idempotency-Key until the answer is not a 503; without a key, look it up before you send it anew.", "Répétez avec la même Idempotency-Key tant que la réponse est un 503 ; sans clé, recherchez-la avant de la renvoyer."})
)
