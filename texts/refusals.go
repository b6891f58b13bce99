package texts

import "intumwa/sms"

// refusals maps the reasons of refused sends to the keys of their texts.
var refusals = map[string]string{
	"company_not_approved": "refusal.approved", "company_not_verified": "refusal.verified",
	"sender_not_found": "refusal.sender.unknown", "sender_not_approved": "refusal.sender.waiting",
	"sender_not_registered": "refusal.sender.registration",
	"opted_out":             "refusal.optedout", "no_carrier": "refusal.carrier", "empty": "refusal.empty",
	"too_long":       "refusal.long",
	"no_test_number": "refusal.testnumber", "other_test_number": "refusal.othernumber", "test_quota": "refusal.quota",
	"insufficient_credits": "refusal.credits", "daily_cap": "refusal.cap",
	"repeated_too_soon": "refusal.repeated", "repeated_too_often": "refusal.repeated", "number_limit": "refusal.repeated",
	"missing_variables": "refusal.variables",
	"not_continued":     "refusal.stopped",
	"person_left":       "refusal.person.left", "person_disabled": "refusal.person.disabled",
	"person_role": "refusal.person.role",
}

// Refusal returns the text of a business rule's refusal. The reason is never shown; without a text of ours the
// refusal's own is, if it has one.
func (l *Language) Refusal(r sms.Refusal) string {
	switch key, known := refusals[r.Reason]; {
	case known:
		return l.T(key)
	case r.Text == "":
		return l.T("refusal.unknown")
	}
	return l.T("refusal.other", r.Text)
}
