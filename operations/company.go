package operations

import (
	"context"
	"strconv"
	"time"

	"intumwa/accounts"
	"intumwa/accounts/companies"
	"intumwa/billing"
	"intumwa/messages/retention"
	"intumwa/reports/exports"
	"intumwa/sms"
)

// CreateCompany creates a company and opens its balance with credits.
func (a Actor) CreateCompany(ctx context.Context, n companies.NewCompany, credits int64) (c accounts.Company,
	err error) {
	err = a.do(ctx, reads, func(in within) (act, error) {
		if c, err = in.companies().CreateCompany(ctx, in.Tx, n); err == nil {
			err = billing.Open(ctx, in.Tx, c.ID)
		}
		if err == nil && credits > 0 {
			_, err = billing.Grant(ctx, in.Tx, c.ID, credits, "credits to begin with")
		}
		return on("company.create", "company", c.ID, c.ID, nil,
			fields{"name": c.Name, "owner_id": c.OwnerID, "approved": c.Approved,
				"verified": c.Verified, "credits": credits}), err
	})
	return c, err
}

// CompanyChange is a change of a company's settings; zero fields change nothing.
type CompanyChange struct {
	companies.CompanyChange

	LowBalance *[]int64        // credits below which it is warned
	Bodies     **time.Duration // how long its texts are kept; nil within: as configured
	Facts      *string         // the version of its facts that the decision is about; nil: not checked
	Reason     string
}

// Settings are what [Actor.SetCompany] changes.
type Settings struct {
	Company       int64 `json:"company_id"`
	Approved      bool  `json:"approved"`
	Verified      bool  `json:"verified"`
	SmartEncoding bool  `json:"smart_encoding"`
	Bounds
	Bodies     string  `json:"bodies,omitempty"` // when changed
	LowBalance []int64 `json:"low_balance,omitempty"`
	QuietHours string  `json:"quiet_hours,omitempty"`
}

// Bounds are a company's own limits; nil: that of the installation.
type Bounds struct {
	DailyCap      *Limit `json:"daily_cap,omitempty"`
	RepeatSeconds *Limit `json:"repeat_seconds,omitempty"`
	RepeatsADay   *Limit `json:"repeats_a_day,omitempty"`
	NumberADay    *Limit `json:"number_a_day,omitempty"`
}

// BoundsOf returns the limits as they are recorded and printed.
func BoundsOf(l accounts.Limits) Bounds {
	return Bounds{(*Limit)(l.CreditsADay), (*Limit)(l.RepeatSeconds), (*Limit)(l.RepeatsADay), (*Limit)(l.NumberADay)}
}

// Limit is a limit of [accounts.Limits]: 0 is none, null in JSON.
type Limit int64

// String formats the limit as a flag value.
func (l Limit) String() string {
	if l == 0 {
		return "none"
	}
	return strconv.FormatInt(int64(l), 10)
}

// MarshalJSON implements json.Marshaler.
func (l Limit) MarshalJSON() ([]byte, error) {
	if l == 0 {
		return []byte("null"), nil
	}
	return []byte(l.String()), nil
}

// BodiesText is a retention of texts as flags have it.
func BodiesText(keep *time.Duration) string {
	switch {
	case keep == nil:
		return "none"
	case *keep == retention.BodiesUntilFinal:
		return "final"
	}
	return keep.String()
}

// SetCompany changes a company's settings. The owner gets a letter about a decision. [ErrChanged] when the facts are
// not those of the given version.
func (a Actor) SetCompany(ctx context.Context, id int64, to CompanyChange) (is Settings, err error) {
	err = a.do(ctx, reads, func(in within) (act, error) {
		if to.Facts != nil { // locked before the company
			facts, err := in.companies().LockFacts(ctx, sms.CompanyID(id))
			if err != nil {
				return act{}, err
			}
			if facts.Version() != *to.Facts {
				return act{}, ErrChanged
			}
		}
		before, err := in.companies().CompanyByID(ctx, id)
		if err != nil {
			return act{}, err
		}
		settings := func(c accounts.Company) (s Settings, err error) {
			s = Settings{Company: c.ID, Approved: c.Approved, Verified: c.Verified, SmartEncoding: c.SmartEncoding,
				Bounds: BoundsOf(c.Limits), QuietHours: c.QuietHours}
			s.LowBalance, err = billing.Thresholds(ctx, in.Tx, sms.CompanyID(id))
			return s, err
		}
		was, err := settings(before)
		if err == nil && to.LowBalance != nil {
			err = billing.SetThresholds(ctx, in.Tx, sms.CompanyID(id), *to.LowBalance...)
		}
		bodies := ""
		if err == nil && to.Bodies != nil {
			var kept *time.Duration
			kept, err = retention.SetBodyRule(ctx, in.Tx, sms.CompanyID(id), *to.Bodies)
			was.Bodies, bodies = BodiesText(kept), BodiesText(*to.Bodies)
			if err == nil && was.Bodies != bodies {
				err = exports.Withdraw(ctx, in.Tx, sms.CompanyID(id))
			}
		}
		var after accounts.Company
		if err == nil { // after the rest: it writes letters
			after, err = in.companies().SetCompany(ctx, id, to.CompanyChange)
		}
		if err == nil {
			is, err = settings(after)
			is.Bodies = bodies
		}
		done := on("company.set", "company", id, id, was, is)
		done.reason = to.Reason
		return done, err
	})
	return is, err
}

// AddCredits adds credits to a company, or takes them, and returns its balance. A repeated call with a key fails with
// [billing.ErrGranted].
func (a Actor) AddCredits(ctx context.Context, of billing.Adjustment) (credits int64, err error) {
	err = a.do(ctx, locks, func(in within) (act, error) {
		if _, err := in.companies().CompanyByID(ctx, of.Company); err != nil {
			return act{}, err
		}
		credits, err = billing.Adjust(ctx, in.Tx, of)
		return on("credits.add", "company", of.Company, of.Company, fields{"credits": credits - of.Amount},
			fields{"credits": credits, "amount": of.Amount, "kind": of.Kind(), "note": of.Note}), err
	})
	return credits, err
}

// recordedFacts are a company's facts, nil if it has stated none.
func recordedFacts(f companies.Facts) any {
	if f.NIF == "" {
		return nil
	}
	return fields{"nif": f.NIF, "trade_register": f.TradeRegister, "company_address": f.Address,
		"phone_number": sms.Number(f.Phone).Masked(), "contact": f.Contact}
}

// recordedDocument is a company's document, nil if it has none.
func recordedDocument(d accounts.Document) any {
	if d.Name == "" {
		return nil
	}
	return fields{"document": d.Name, "octets": d.Size}
}

// SetFacts stores what a company states about itself.
func (a Actor) SetFacts(ctx context.Context, company sms.CompanyID, facts companies.Facts) error {
	return a.do(ctx, reads, func(in within) (act, error) {
		before, after, err := in.companies().SetFacts(ctx, company, facts)
		done := on("company.facts", "company", int64(company), int64(company), recordedFacts(before), recordedFacts(after))
		done.hidden = true // a masked number
		return done, err
	})
}

// SetDocument stores a company's document.
func (a Actor) SetDocument(ctx context.Context, company sms.CompanyID, name string, file []byte) error {
	return a.do(ctx, reads, func(in within) (act, error) {
		before, after, err := in.companies().SetDocument(ctx, company, name, file)
		done := on("company.document", "company", int64(company), int64(company), recordedDocument(before.Document),
			recordedDocument(after.Document))
		done.hidden = true // the content
		return done, err
	})
}

// DeleteDocument deletes a company's document, which is no longer needed once it is checked.
func (a Actor) DeleteDocument(ctx context.Context, company sms.CompanyID) error {
	return a.do(ctx, reads, func(in within) (act, error) {
		facts, err := in.companies().DeleteDocument(ctx, company)
		return on("company.document_delete", "company", int64(company), int64(company), recordedDocument(facts.Document),
			nil), err
	})
}
