package accounts

import "intumwa/sms"

// Principal is the caller of a request, at most two seconds old. Requests share it: do not change it.
type Principal struct {
	UserID     int64
	TokenID    int64
	Token      TokenLimits
	Company    *Company   // nil when the user has none
	TestNumber sms.Number // the verified test number, empty when there is none
}

// Company is the customer. Its balance belongs to billing.
type Company struct {
	ID            int64
	OwnerID       int64 // an owner, who gets the mails about it
	Name          string
	Approved      bool
	Verified      bool
	SmartEncoding bool
	QuietHours    string // "21:00-06:00", "none", or "" for those of the installation
	Limits        Limits // not set in a session and an applicant

	// OptOuts is whether its opt-out list may have entries. Set in a [Principal] only.
	OptOuts bool
	// Senders by their exact name. Set in a [Principal] only.
	Senders map[string]Sender
}

// JoinedCompany are the columns of Company.Joined behind a left join: the id is 0 where there is no company.
const JoinedCompany = `coalesce(c.id, 0), coalesce(c.owner_id, 0), coalesce(c.name, ''),
	coalesce(c.approved, false), coalesce(c.verified, false), coalesce(c.smart_encoding, false),
	coalesce(c.quiet_hours, '')`

// Joined are the destinations of JoinedCompany.
func (c *Company) Joined() []any {
	return []any{&c.ID, &c.OwnerID, &c.Name, &c.Approved, &c.Verified, &c.SmartEncoding, &c.QuietHours}
}

// OrNil returns a copy of a joined company; nil where there is none.
func (c Company) OrNil() *Company {
	if c.ID == 0 {
		return nil
	}
	return &c
}

// Sender is a name that a company may send as.
type Sender struct {
	ID       int64  `json:"sender_id"`
	Name     string `json:"name"`
	Country  string `json:"-"` // telco country, ISO 3166-1 alpha-2
	Approved bool   `json:"approved"`

	// Works is whether it works at the carriers about which something is recorded. Set in a [Principal] only; ask
	// [Sender.WorksAt].
	Works map[string]bool `json:"-"`
}

// WorksAt reports whether messages as this sender may go to a carrier: as its registration there says or, if nothing is
// recorded, unless the carrier's configuration requires one.
func (s Sender) WorksAt(carrier string, required bool) bool {
	if works, recorded := s.Works[carrier]; recorded {
		return works
	}
	return !required
}
