package accounts

import "intumwa/sms"

// Principal is who is calling, as Postgres had it a moment ago. It is shared between requests: read it only.
type Principal struct {
	UserID     int64
	TokenID    int64
	Company    *Company   // nil when the user has none
	TestNumber sms.Number // the verified test number, empty when there is none
}

// Company belongs to one user. Its balance is billing's.
type Company struct {
	ID            int64
	OwnerID       int64
	Name          string
	Approved      bool
	Verified      bool
	SmartEncoding bool

	// Senders by their exact name. Filled in a [Principal] only.
	Senders map[string]Sender
}

// Sender is a name that a company may send as.
type Sender struct {
	ID       int64
	Name     string
	Country  string // telco country, ISO 3166-1 alpha-2
	Approved bool
}
