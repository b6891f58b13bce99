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
	// Documents are the titles of invoices, credit notes and receipts.
	Documents = map[string]string{"sale": "invoice.title.sale", "credit_note": "invoice.title.note",
		"receipt": "invoice.title.receipt"}
	// InvoiceHeads are the columns of a month's invoices.
	InvoiceHeads = map[string]string{"number": "invoice.number", "kind": "statement.kind", "date": "invoice.csv.date",
		"company": "sheet.number", "customer": "order.company", "nif": "month.nif", "order": "order.number",
		"refers_to": "invoice.csv.corrects", "credits": "order.credits", "price": "month.price", "net": "invoice.net",
		"total": "invoice.total", "paid": "order.state.paid", "way": "order.way", "reason": "order.reason"}
)
