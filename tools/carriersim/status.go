package carriersim

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Status is an SMPP command_status (SMPP 3.4, 5.1.3).
type Status uint32

// The statuses that this carrier can send.
const (
	OK                Status = 0x00
	InvalidLength     Status = 0x01 // ESME_RINVMSGLEN
	InvalidCommandLen Status = 0x02 // ESME_RINVCMDLEN
	InvalidCommand    Status = 0x03 // ESME_RINVCMDID
	InvalidBindStatus Status = 0x04 // ESME_RINVBNDSTS
	AlreadyBound      Status = 0x05 // ESME_RALYBND
	InvalidPriority   Status = 0x06 // ESME_RINVPRTFLG
	InvalidRegistered Status = 0x07 // ESME_RINVREGDLVFLG
	SystemError       Status = 0x08 // ESME_RSYSERR
	InvalidSource     Status = 0x0A // ESME_RINVSRCADR
	InvalidDest       Status = 0x0B // ESME_RINVDSTADR
	BindFailed        Status = 0x0D // ESME_RBINDFAIL
	InvalidPassword   Status = 0x0E // ESME_RINVPASWD
	InvalidSystemID   Status = 0x0F // ESME_RINVSYSID
	QueueFull         Status = 0x14 // ESME_RMSGQFUL
	InvalidService    Status = 0x15 // ESME_RINVSERTYP
	InvalidESMClass   Status = 0x43 // ESME_RINVESMCLASS
	SubmitFailed      Status = 0x45 // ESME_RSUBMITFAIL
	InvalidSourceTON  Status = 0x48 // ESME_RINVSRCTON
	InvalidSourceNPI  Status = 0x49 // ESME_RINVSRCNPI
	InvalidDestTON    Status = 0x50 // ESME_RINVDSTTON
	InvalidDestNPI    Status = 0x51 // ESME_RINVDSTNPI
	InvalidSystemType Status = 0x53 // ESME_RINVSYSTYP
	InvalidReplace    Status = 0x54 // ESME_RINVREPFLAG
	Throttled         Status = 0x58 // ESME_RTHROTTLED
	InvalidSchedule   Status = 0x61 // ESME_RINVSCHED
	InvalidExpiry     Status = 0x62 // ESME_RINVEXPIRY
	InvalidDefaultMsg Status = 0x63 // ESME_RINVDFTMSGID
	ReceiverTemporary Status = 0x64 // ESME_RX_T_APPN
	ReceiverPermanent Status = 0x65 // ESME_RX_P_APPN
	InvalidTLVStream  Status = 0xC0 // ESME_RINVOPTPARSTREAM
	TLVNotAllowed     Status = 0xC1 // ESME_ROPTPARNOTALLWD
	InvalidTLVLength  Status = 0xC2 // ESME_RINVPARLEN
	InvalidTLVValue   Status = 0xC4 // ESME_RINVOPTPARAMVAL
	DeliveryFailure   Status = 0xFE // ESME_RDELIVERYFAILURE
	UnknownError      Status = 0xFF // ESME_RUNKNOWNERR
	InvalidDataCoding Status = 0x104
	VendorError       Status = 0x400 // the first of the range left to carriers
)

var statusNames = map[Status]string{ //nolint:gosec // names of SMPP statuses, no credentials
	OK: "ESME_ROK", InvalidLength: "ESME_RINVMSGLEN", InvalidCommandLen: "ESME_RINVCMDLEN",
	InvalidCommand: "ESME_RINVCMDID", InvalidBindStatus: "ESME_RINVBNDSTS", AlreadyBound: "ESME_RALYBND",
	InvalidPriority: "ESME_RINVPRTFLG", InvalidRegistered: "ESME_RINVREGDLVFLG", SystemError: "ESME_RSYSERR",
	InvalidSource: "ESME_RINVSRCADR", InvalidDest: "ESME_RINVDSTADR", BindFailed: "ESME_RBINDFAIL",
	InvalidPassword: "ESME_RINVPASWD", InvalidSystemID: "ESME_RINVSYSID", QueueFull: "ESME_RMSGQFUL",
	InvalidService: "ESME_RINVSERTYP", InvalidESMClass: "ESME_RINVESMCLASS", SubmitFailed: "ESME_RSUBMITFAIL",
	InvalidSourceTON: "ESME_RINVSRCTON", InvalidSourceNPI: "ESME_RINVSRCNPI", InvalidDestTON: "ESME_RINVDSTTON",
	InvalidDestNPI: "ESME_RINVDSTNPI", InvalidSystemType: "ESME_RINVSYSTYP", InvalidReplace: "ESME_RINVREPFLAG",
	Throttled: "ESME_RTHROTTLED", InvalidSchedule: "ESME_RINVSCHED", InvalidExpiry: "ESME_RINVEXPIRY",
	InvalidDefaultMsg: "ESME_RINVDFTMSGID", ReceiverTemporary: "ESME_RX_T_APPN", ReceiverPermanent: "ESME_RX_P_APPN",
	InvalidTLVStream: "ESME_RINVOPTPARSTREAM", TLVNotAllowed: "ESME_ROPTPARNOTALLWD", InvalidTLVLength: "ESME_RINVPARLEN",
	InvalidTLVValue: "ESME_RINVOPTPARAMVAL",
	DeliveryFailure: "ESME_RDELIVERYFAILURE", UnknownError: "ESME_RUNKNOWNERR", InvalidDataCoding: "ESME_RINVDCS",
}

// String returns the specified name, or the number in hex without one.
func (s Status) String() string {
	if name, ok := statusNames[s]; ok {
		return name
	}
	return fmt.Sprintf("0x%08X", uint32(s))
}

// MarshalText returns the name, so JSON has names instead of numbers.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalJSON accepts a number (88) or a string: a specified name or a number in Go
// syntax ("ESME_RTHROTTLED", "0x58").
func (s *Status) UnmarshalJSON(data []byte) error {
	var number uint32
	if json.Unmarshal(data, &number) == nil {
		*s = Status(number)
		return nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("command_status: neither a number nor a string: %w", err)
	}
	for status, name := range statusNames {
		if name == text {
			*s = status
			return nil
		}
	}
	parsed, err := strconv.ParseUint(text, 0, 32)
	if err != nil {
		return fmt.Errorf("command_status %q: neither a name nor a number", text)
	}
	*s = Status(parsed)
	return nil
}

// State is the message_state of a receipt (SMPP 3.4, 5.2.28).
type State uint8

// The states of a message; Skipped is from SMPP 5.0.
const (
	Scheduled State = iota
	Enroute
	Delivered
	Expired
	Deleted
	Undeliverable
	Accepted
	Unknown
	Rejected
	Skipped
)

// String returns the seven letters of a text receipt's stat field (SMPP 3.4, Appendix B).
func (s State) String() string {
	names := [...]string{"SCHEDLD", "ENROUTE", "DELIVRD", "EXPIRED", "DELETED", "UNDELIV", "ACCEPTD", "UNKNOWN", "REJECTD",
		"SKIPPED"}
	if int(s) < len(names) {
		return names[s]
	}
	return "UNKNOWN"
}

// MarshalText returns String.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
