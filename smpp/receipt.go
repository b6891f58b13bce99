package smpp

import "time"

// Receipt is a delivery receipt or intermediate notification.
type Receipt struct {
	// ID is the carrier's message id as sent: receipted_message_id (0x001E), or
	// the text's id. Empty when neither is there.
	ID string
	// State is the text form, upper case: ENROUTE, DELIVRD, EXPIRED, DELETED,
	// UNDELIV, ACCEPTD, UNKNOWN, REJECTD, SCHEDULED, SKIPPED or what the carrier
	// wrote; from message_state (0x0427) where that is sent and known.
	State string
	// Error is the text's err as written ("000"), often vendor specific.
	Error string
	// NetworkError is network_error_code (0x0423); nil when not sent.
	NetworkError *NetworkError
	// Submitted and Done are the text's dates: the carrier's wall clock, given
	// as UTC because no zone is sent. Zero when missing or unreadable.
	Submitted time.Time
	Done      time.Time
	// UserMessageReference is user_message_reference (0x0204), the submit_sm's
	// own echoed; nil when not sent.
	UserMessageReference *uint16
	// Intermediate: an intermediate notification, not a final receipt.
	Intermediate bool
}

// NetworkError is a network_error_code.
type NetworkError struct {
	Type uint8 // 1 ANSI-136, 2 IS-95, 3 GSM, …
	Code uint16
}
