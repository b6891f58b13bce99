package sms

// Status is where a message is in its life (rule api 3). The values are stored;
// they never change.
type Status uint8

const (
	// Pending: recorded and paid, not yet final.
	Pending Status = 0
	// Sent: the carrier confirmed it.
	Sent Status = 1
	// Failed: the carrier refused it or reported a failure, or its time ran out.
	Failed Status = 2
)

var statusNames = [...]string{Pending: "pending", Sent: "sent", Failed: "failed"}

// String is the status as the API shows it.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "unknown"
}

// Final tells whether no transition leads out of the status.
func (s Status) Final() bool { return s == Sent || s == Failed }

// ParseStatus reads what String writes.
func ParseStatus(name string) (Status, bool) {
	for status, known := range statusNames {
		if name == known {
			return Status(status), true
		}
	}
	return 0, false
}
