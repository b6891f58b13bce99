package smpp

// Receipt is a delivery receipt or intermediate notification.
type Receipt struct {
	// ID is the carrier's message id as sent: receipted_message_id (0x001E), or
	// the text's id. Empty when neither is there.
	ID string
	// Also are further ids of the same PDU, in the order to try them: the text's beside the TLV's, or a second one in
	// the text; "" for none.
	Also [2]string
	// State is the text form, upper case: ENROUTE, DELIVRD, EXPIRED, DELETED,
	// UNDELIV, ACCEPTD, UNKNOWN, REJECTD, SCHEDULED, SKIPPED or what the carrier
	// wrote ([StateOf]); from message_state (0x0427) where that is sent and known.
	State string
	// Error is the text's err as written ("000"), often vendor specific.
	Error string
	// UserMessageReference is user_message_reference (0x0204), the submit_sm's
	// own echoed; nil when not sent.
	UserMessageReference *uint16
	// Intermediate: an intermediate notification, not a final receipt.
	Intermediate bool
	// Unmarked: neither esm_class nor TLVs say that this is a receipt, only its text. A person could have typed it.
	Unmarked bool
}

// addID adds an id unless it is known already. The first is ID.
func (r *Receipt) addID(id string) {
	switch {
	case id == "" || id == r.ID || id == r.Also[0]:
	case r.ID == "":
		r.ID = id
	case r.Also[0] == "":
		r.Also[0] = id
	case r.Also[1] == "":
		r.Also[1] = id
	}
}

// messageStates is message_state (SMPP 3.4, 5.2.28; SKIPPED and SCHEDULED 5.0)
// in the words of the text form.
var messageStates = [...]string{
	"SCHEDULED", "ENROUTE", "DELIVRD", "EXPIRED", "DELETED",
	"UNDELIV", "ACCEPTD", "UNKNOWN", "REJECTD", "SKIPPED",
}

// stateNames maps the names of SMPP 3.4, 5.2.28, and what carriers make of them, to the words of the text form
// (jookies/jasmin#181, farhadi/node-smpp#34).
var stateNames = map[string]string{
	"DELIVERED": "DELIVRD", "DELIVERD": "DELIVRD", "DELIVERED_TO_HANDSET": "DELIVRD", "DELIVERED-TO-HANDSET": "DELIVRD",
	"DELIVEREDTOHANDSET": "DELIVRD",
	"UNDELIVERABLE":      "UNDELIV", "UNDELIVERED": "UNDELIV", "UNDELIVERD": "UNDELIV", "UNDELIVRD": "UNDELIV",
	"UNDELIVR":      "UNDELIV",
	"NOT_DELIVERED": "UNDELIV", "NOT-DELIVERED": "UNDELIV", "NOTDELIVERED": "UNDELIV",
	"REJECTED": "REJECTD", "ACCEPTED": "ACCEPTD", "EN_ROUTE": "ENROUTE", "EN-ROUTE": "ENROUTE", "EXPIRD": "EXPIRED",
	"FAIL": StateFailed, "FAILURE": StateFailed,
}

// StateFailed is a word that vendors use for a failure, beside those of SMPP.
const StateFailed = "FAILED"

// StateOf returns a receipt's word in the form of Receipt.State: in upper case, and the long names of SMPP 3.4, 5.2.28
// as their abbreviations.
func StateOf(word string) string {
	word = upper(word)
	if short, ok := stateNames[word]; ok {
		return short
	}
	return word
}

// KnownState reports whether a state is one of SMPP's, or StateFailed.
func KnownState(state string) bool {
	for _, known := range messageStates {
		if state == known {
			return true
		}
	}
	return state == StateFailed
}

// Reading is how a carrier's deliveries are read where it departs from SMPP 3.4.
type Reading struct {
	StateDigits bool // a text's stat may be the number of message_state: stat:2 is DELIVRD
	HiddenUDH   bool // a UDH may begin the text although esm_class does not say so
	Packed      bool // texts in data_coding 0 are packed septets, eight in seven bytes
}
