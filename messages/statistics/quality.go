package statistics

import (
	"context"
	"time"

	"intumwa/sms"
)

// Dimension is a property of messages by which Quality counts, from a closed set.
type Dimension string

// Dimensions.
const (
	ByDay        Dimension = "day"   // in Burundi, of acceptance
	ByMonth      Dimension = "month" // likewise
	ByCompany    Dimension = "company"
	ByCarrier    Dimension = "carrier"
	BySender     Dimension = "sender"
	ByKind       Dimension = "kind"
	ByChannel    Dimension = "channel"
	ByCostCenter Dimension = "cost_center"
)

// Kinds are the values of Quality.Kind, by their numbers in tallies. A test goes to a test number or into the sandbox,
// and is not paid.
var Kinds = []string{"single", "batch", "test"}

// QualityFilter selects messages; an empty field selects all.
type QualityFilter struct {
	Company      sms.CompanyID // invalid: none, unless AllCompanies
	AllCompanies bool          // for operators

	First, Last time.Time // days in Burundi, both included; their dates count
	Carrier     string
	Sender      string
	CostCenter  string
	Kind        string // of Kinds; an unknown one selects none
	Channel     string // of Channels; likewise
	Paid        bool   // no tests

	Sums bool // only numbers: no times and no reasons, which take most of the time
	Most int  // rows, for sums that nobody reads row by row; 0: QualityMost
}

// Quality is what became of the messages that share the properties by which they were counted. The other properties are
// empty.
type Quality struct {
	Day        time.Time // ByDay, or the first day ByMonth: midnight UTC of its date
	Company    sms.CompanyID
	Carrier    string // as routed; once submitted, the carrier that has it
	Sender     string
	Kind       string
	Channel    string
	CostCenter string

	Waiting   int64 // no carrier has or may have any of it
	AtCarrier int64 // no receipt yet
	Sent      int64
	Failed    int64
	Reasons   []Reason // of Failed, the most frequent first
	Segments  int64
	Credits   int64 // charged at acceptance: segments without those of tests. Refunds are not subtracted
	ToCarrier Times // from acceptance, or send_at, until a carrier first had a segment
	ToReceipt Times // from when this carrier had a segment until the receipt that made it final
}

// Reason is a number of messages that failed for a reason: the carrier's words, a reason of package submission,
// ReasonCancelled, or Others.
type Reason struct {
	Reason   string
	Messages int64
}

// Accepted is the number of messages.
func (q *Quality) Accepted() int64 { return q.Waiting + q.AtCarrier + q.Sent + q.Failed }

// Pending is the number of messages that are not final.
func (q *Quality) Pending() int64 { return q.Waiting + q.AtCarrier }

// Success is the [Share] of sent messages of the final ones. ok is false when none is final.
func (q *Quality) Success() (thousandths int64, ok bool) {
	return Share(q.Sent, q.Sent+q.Failed), q.Sent+q.Failed > 0
}

// Times are messages by how long something took: their number in each bucket of timeBounds.
type Times []int64

// Percentile returns the time within which a share (of 1) of the messages were done: the upper bound of its bucket, so
// it is exact within the buckets. ok is false without messages; over is true when it was more than a day, the last
// bound.
func (t Times) Percentile(share float64) (within time.Duration, over, ok bool) {
	var all, seen int64
	for _, n := range t {
		all += n
	}
	if all == 0 {
		return 0, false, false
	}
	for i, n := range t {
		if seen += n; i < len(timeBounds) && float64(seen) >= share*float64(all) {
			return timeBounds[i], false, true
		}
	}
	return timeBounds[len(timeBounds)-1], true, true
}

func (t *Times) add(more []int64) {
	if len(*t) < len(more) {
		*t = append(*t, make(Times, len(more)-len(*t))...)
	}
	for i, n := range more {
		(*t)[i] += n
	}
}

// Day is a company's messages of one day and carrier, by status.
type Day struct {
	Date    time.Time // midnight UTC of the day's date in Burundi
	Carrier string
	Pending int64
	Sent    int64
	Failed  int64
}

// Daily returns a company's messages by day and carrier, from the first day to the last, as Quality counts them.
func (s *Store) Daily(ctx context.Context, company sms.CompanyID, first, last time.Time) ([]Day, error) {
	counted, err := s.Quality(ctx, QualityFilter{Company: company, First: first, Last: last, Sums: true}, ByDay, ByCarrier)
	days := make([]Day, len(counted))
	for i := range counted {
		q := &counted[i]
		days[i] = Day{q.Day, q.Carrier, q.Pending(), q.Sent, q.Failed}
	}
	return days, err
}
