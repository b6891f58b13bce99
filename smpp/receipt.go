package smpp

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
	// UserMessageReference is user_message_reference (0x0204), the submit_sm's
	// own echoed; nil when not sent.
	UserMessageReference *uint16
	// Intermediate: an intermediate notification, not a final receipt.
	Intermediate bool
}
