package texts

// Names of recorded values, which several pages and files show.
var (
	// MessageKinds are the kinds of messages.
	MessageKinds = map[string]string{"single": "quality.kind.single", "batch": "quality.kind.batch",
		"test": "quality.kind.test"}
	// EntryKinds are the kinds of ledger rows.
	EntryKinds = map[string]string{"send": "statement.kind.send", "refund": "statement.kind.refund",
		"adjustment": "statement.kind.adjustment", "correction": "statement.kind.correction"}
	// Locales are the languages of verifications.
	Locales = map[string]string{"rn": "verification.rn", "fr": "verification.fr", "en": "verification.en",
		"sw": "verification.sw"}
)
