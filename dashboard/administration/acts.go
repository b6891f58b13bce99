package administration

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"intumwa/accounts"
	"intumwa/accounts/keys"
	"intumwa/accounts/senders"
	"intumwa/dashboard/web"
	"intumwa/dispatcher"
	"intumwa/internal/audit"
	"intumwa/sms"
	"intumwa/texts"
	"intumwa/webhooks"
)

// actRow is an act as shown on a page.
type actRow struct {
	audit.Act

	Who     string // the actor's e-mail, or the recorded actor
	What    string // the act in words
	Changes []actChange
}

// actChange is one value of an act, before and after.
type actChange struct {
	Name, Before, After string // empty: nothing
	Changed             bool
}

// actRows prepares acts for a page and reads the actors' e-mails.
func (ps *Pages) actRows(v *web.Visit, list []audit.Act) []actRow {
	rows := make([]actRow, len(list))
	known := map[string]string{}
	for i, a := range list {
		who, ok := known[a.Actor]
		if !ok {
			who = a.Actor
			if id, err := strconv.ParseInt(strings.TrimPrefix(a.Actor, "user "), 10, 64); err == nil &&
				strings.HasPrefix(a.Actor, "user ") {
				if user, err := ps.Deps.People.UserByID(v.Ctx(), id); err == nil {
					who = user.Email
				}
			}
			known[a.Actor] = who
		}
		rows[i] = actRow{Act: a, Who: who, What: a.Act, Changes: changesOf(v.Lang, a.Before, a.After)}
		if key := "act." + a.Act; v.Lang.Has(key) { // a test checks that every recorded act has a text
			rows[i].What = v.Lang.T(key)
		}
	}
	return rows
}

// stateTexts maps the names of recorded values to the keys of their texts.
var stateTexts = map[string]string{
	"approved": "acts.is.approved", "verified": "acts.is.verified", "smart_encoding": "acts.is.smart",
	"reason": "acts.is.reason", "quiet_hours": "acts.is.quiet", "name": "acts.is.name",
	"country": "acts.is.country", "purpose": "acts.is.purpose", "credits": "acts.is.credits", "amount": "acts.is.amount",
	"kind": "acts.is.kind", "note": "acts.is.note", "valid_from": "acts.is.from", "bif": "acts.is.bif",
	"user_id": "acts.is.user", "owner_id": "acts.is.owner", "company_id": "acts.is.company", "email": "acts.is.email",
	"role": "acts.is.role", "administrator": "acts.is.administrator", "disabled": "acts.is.disabled",
	"revoked": "acts.is.revoked", "paused": "acts.is.paused", "state": "acts.is.state", "since": "acts.is.since",
	"found": "acts.is.found", "url": "acts.is.url",
	"phone_number": "acts.is.number", "daily_cap": "acts.is.cap", "repeat_seconds": "acts.is.interval",
	"repeats_a_day": "acts.is.repeats", "number_a_day": "acts.is.messages", "bodies": "acts.is.bodies",
	"contacts": "acts.is.contacts", "members": "acts.is.members", "lines": "acts.is.lines", "added": "acts.is.added",
	"changed": "acts.is.changed", "refused": "acts.is.refused", "without_nif": "acts.is.withoutnif",
	"active": "acts.is.active", "previous_until": "acts.is.previous", "secret_given": "acts.is.secret",
	"scopes": "acts.is.scopes", "expires_at": "acts.is.expires", "sessions": "acts.is.sessions",
	"window": "acts.is.window", "tps": "acts.is.tps", "binds": "acts.is.binds", "networks": "acts.is.networks",
	"alphabet": "acts.is.alphabet", "events": "acts.is.events", "to": "acts.is.to", "low_balance": "acts.is.thresholds",
	"address": "acts.is.address", "keyword": "acts.is.keyword", "carrier": "acts.is.carrier", "sender": "acts.is.sender",
	"sent_on": "registration.sent.on",
	"nif":     "facts.nif", "trade_register": "facts.register", "company_address": "facts.address",
	"contact":  "facts.contact",
	"document": "facts.document", "octets": "acts.is.octets", "locale": "acts.is.locale",
	"system_id": "acts.is.systemid", "next": "acts.is.next", "messages": "acts.is.processed", "pending": "acts.is.pending",
	"receipts": "acts.is.receipts", "inbound": "tab.inbound", "test_codes": "acts.is.codes",
	"verifications": "tab.verifications", "exports": "exports.files", "cancelled": "acts.is.cancelled",
	"credits_returned": "acts.is.returned", "left": "acts.is.left", "handed_over": "acts.is.handed",
	"failed": "acts.is.failed", "message_ids": "message.number",
	"received": "order.received", "reference": "order.reference", "way": "order.way", "paid_on": "order.on",
	"invoice": "order.document", "total": "invoice.total", "credit_note": "order.note", "first": "acts.is.first",
	"last": "acts.is.last",
}

// changesOf pairs the values before and after, and replaces values by their texts.
func changesOf(l *texts.Language, before, after json.RawMessage) (changes []actChange) {
	was, is := stateOf(before), stateOf(after)
	names := slices.Sorted(maps.Keys(was))
	for name := range is {
		if _, both := was[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		change := actChange{name, valueText(l, name, was[name]), valueText(l, name, is[name]), was[name] != is[name]}
		if key := stateTexts[name]; key != "" {
			change.Name = l.T(key)
		}
		changes = append(changes, change)
	}
	return changes
}

// valueTexts maps the recorded values of a name to the keys of their texts.
var valueTexts = map[string]map[string]string{
	"kind": texts.EntryKinds,
	"role": {"owner": "role.owner", "sender": "role.sender", "developer": "role.developer", "finance": "role.finance",
		"reader": "role.reader"},
	"state": {senders.RegistrationRequested: "registration.requested", senders.RegistrationSent: "registration.sent",
		senders.RegistrationApproved: "registration.approved",
		senders.RegistrationRefused:  "registration.refused", senders.RegistrationNotNeeded: "registration.unneeded",
		"waiting":             "verification.text.waiting",
		webhooks.StatePending: "delivery.pending", webhooks.StateDelivered: "delivery.delivered",
		webhooks.StateFailed: "delivery.failed"},
	"scopes": {accounts.ScopeSend: "acts.value.send", accounts.ScopeRead: "acts.value.read", keys.ScopeSMPP: "nav.smpp"},
	"to":     {dispatcher.Refuse: "acts.value.refuse"},
	"bodies": {"none": "acts.value.always", "final": "acts.value.final"},
	"locale": texts.Locales,
}

// valueText returns a recorded value in words.
func valueText(l *texts.Language, name, value string) string {
	if list := strings.TrimPrefix(value, "["); list != value { // of texts or numbers
		var items []any
		if json.Unmarshal([]byte(value), &items) == nil {
			texts := make([]string, len(items))
			for i, item := range items {
				texts[i] = valueText(l, name, fmt.Sprint(item))
			}
			return cmp.Or(strings.Join(texts, ", "), "–")
		}
	}
	if key := valueTexts[name][value]; key != "" {
		return l.T(key)
	}
	switch value {
	case "true":
		return l.T("acts.yes")
	case "false":
		return l.T("acts.no")
	}
	if n, err := strconv.ParseInt(value, 10, 64); err == nil && countNames[name] {
		return l.Number(n)
	}
	if day, err := time.ParseInLocation(time.DateOnly, value, texts.Bujumbura); err == nil {
		return l.Date(day)
	}
	if at, err := time.Parse(time.RFC3339, value); err == nil {
		return l.Moment(at)
	}
	if name == "bif" {
		return l.T("money.bif", l.Amount(value))
	}
	return value
}

// countNames are the names of recorded counts; other numbers are ids.
var countNames = map[string]bool{"credits": true, "amount": true, "octets": true, "daily_cap": true,
	"repeat_seconds": true, "repeats_a_day": true, "number_a_day": true,
	"low_balance": true, "tps": true, "window": true, "sessions": true, "binds": true, "messages": true, "pending": true,
	"receipts": true, "inbound": true, "events": true,
	"found": true, "cancelled": true, "credits_returned": true, "left": true, "handed_over": true, "failed": true}

// stateOf returns a recorded state's values by name, for display.
func stateOf(raw json.RawMessage) map[string]string {
	if raw == nil {
		return nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		fields = map[string]json.RawMessage{"": raw}
	}
	shown := make(map[string]string, len(fields))
	for name, value := range fields {
		text := "–" // for null
		if json.Unmarshal(value, &text) != nil {
			text = string(bytes.TrimSpace(value))
		}
		if runes := []rune(text); len(runes) > 300 {
			text = string(runes[:300]) + "…"
		}
		shown[sms.Printable(name)] = sms.Printable(text)
	}
	return shown
}

// Acts is GET /admin/acts: the audit log.
func (ps *Pages) Acts(v *web.Visit) error {
	f := v.Parameters("company", "actor", "from", "to")
	var filter audit.Filter
	filter.Since, filter.Until = f.Days()
	if text := f.Value("company"); text != "" {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id <= 0 {
			f.Refuse("company", "acts.company.wrong")
		}
		filter.Company = sms.CompanyID(id)
	}
	if text := f.Value("actor"); text != "" {
		filter.Actor = text
		if strings.Contains(text, "@") { // a user of the dashboard: recorded by its id
			if user, err := ps.Deps.People.UserByEmail(v.Ctx(), text); err == nil {
				filter.Actor = audit.User(user.ID)
			}
		}
	}
	rows, err := web.List(v, "/admin/acts", web.RowsOnPage, func(before int64, limit int) ([]actRow, int64, error) {
		acts, next, err := audit.List(v.Ctx(), ps.Deps.Pool, filter, before, limit)
		return ps.actRows(v, acts), next, err
	})
	return v.Page(err, "adminacts", rows)
}
