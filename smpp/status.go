package smpp

import "fmt"

// Status is an SMPP command_status.
type Status uint32

// The statuses this package or its callers name.
const (
	StatusOK           Status = 0x00000000
	StatusInvMsgLen    Status = 0x00000001
	StatusInvCmdLen    Status = 0x00000002
	StatusInvCmdID     Status = 0x00000003
	StatusInvBindState Status = 0x00000004
	StatusAlreadyBound Status = 0x00000005
	StatusSysErr       Status = 0x00000008
	StatusInvSrcAddr   Status = 0x0000000A
	StatusInvDstAddr   Status = 0x0000000B
	StatusInvPassword  Status = 0x0000000E
	StatusInvSystemID  Status = 0x0000000F
	StatusMsgQueueFull Status = 0x00000014
	StatusInvSysType   Status = 0x00000053
	StatusThrottled    Status = 0x00000058
	StatusInvSrcTON    Status = 0x00000048
	StatusInvSrcNPI    Status = 0x00000049
	StatusTemporary    Status = 0x00000064
	StatusUnknown      Status = 0x000000FF
	StatusInvOptStream Status = 0x000000C0
)

// Class is how the sender should react to the status of a rejected submit_sm.
type Class uint8

const (
	// ClassOK: accepted.
	ClassOK Class = iota
	// ClassThrottled: the carrier is overloaded; slow the bind, send again.
	ClassThrottled
	// ClassTemporary: send again later. Vendor and unknown statuses are here.
	ClassTemporary
	// ClassPermanent: this message will never be accepted.
	ClassPermanent
	// ClassConfiguration: it would be the same for every message; the bind's
	// settings are wrong.
	ClassConfiguration
	// ClassSession: the carrier does not regard the session as bound; the bind binds
	// again, the message can be sent again.
	ClassSession
	// ClassUnroutable: this message will never be accepted, because the carrier has
	// no way to its number; another one may have.
	ClassUnroutable
)

// String returns the class as logs spell it.
func (c Class) String() string {
	switch c {
	case ClassOK:
		return "ok"
	case ClassThrottled:
		return "throttled"
	case ClassTemporary:
		return "temporary"
	case ClassPermanent:
		return "permanent"
	case ClassConfiguration:
		return "configuration"
	case ClassSession:
		return "session"
	case ClassUnroutable:
		return "unroutable"
	}
	return "invalid"
}

type statusInfo struct {
	name  string
	class Class
}

// statuses is the error code table of SMPP 3.4 (5.1.3), with RINVDCS of 5.0, and the
// class of each status in a submit_sm_resp.
var statuses = map[Status]statusInfo{
	0x00:  {"ESME_ROK", ClassOK},
	0x01:  {"ESME_RINVMSGLEN", ClassPermanent},
	0x02:  {"ESME_RINVCMDLEN", ClassConfiguration},
	0x03:  {"ESME_RINVCMDID", ClassConfiguration},
	0x04:  {"ESME_RINVBNDSTS", ClassSession},
	0x05:  {"ESME_RALYBND", ClassTemporary},
	0x06:  {"ESME_RINVPRTFLG", ClassConfiguration},
	0x07:  {"ESME_RINVREGDLVFLG", ClassConfiguration},
	0x08:  {"ESME_RSYSERR", ClassTemporary},
	0x0A:  {"ESME_RINVSRCADR", ClassPermanent},
	0x0B:  {"ESME_RINVDSTADR", ClassUnroutable},
	0x0C:  {"ESME_RINVMSGID", ClassTemporary},
	0x0D:  {"ESME_RBINDFAIL", ClassTemporary},
	0x0E:  {"ESME_RINVPASWD", ClassTemporary},
	0x0F:  {"ESME_RINVSYSID", ClassTemporary},
	0x11:  {"ESME_RCANCELFAIL", ClassTemporary},
	0x13:  {"ESME_RREPLACEFAIL", ClassTemporary},
	0x14:  {"ESME_RMSGQFUL", ClassThrottled},
	0x15:  {"ESME_RINVSERTYP", ClassConfiguration},
	0x33:  {"ESME_RINVNUMDESTS", ClassConfiguration},
	0x34:  {"ESME_RINVDLNAME", ClassConfiguration},
	0x40:  {"ESME_RINVDESTFLAG", ClassConfiguration},
	0x42:  {"ESME_RINVSUBREP", ClassConfiguration},
	0x43:  {"ESME_RINVESMCLASS", ClassConfiguration},
	0x44:  {"ESME_RCNTSUBDL", ClassConfiguration},
	0x45:  {"ESME_RSUBMITFAIL", ClassTemporary},
	0x48:  {"ESME_RINVSRCTON", ClassConfiguration},
	0x49:  {"ESME_RINVSRCNPI", ClassConfiguration},
	0x50:  {"ESME_RINVDSTTON", ClassConfiguration},
	0x51:  {"ESME_RINVDSTNPI", ClassConfiguration},
	0x53:  {"ESME_RINVSYSTYP", ClassConfiguration},
	0x54:  {"ESME_RINVREPFLAG", ClassConfiguration},
	0x55:  {"ESME_RINVNUMMSGS", ClassConfiguration},
	0x58:  {"ESME_RTHROTTLED", ClassThrottled},
	0x61:  {"ESME_RINVSCHED", ClassConfiguration},
	0x62:  {"ESME_RINVEXPIRY", ClassConfiguration},
	0x63:  {"ESME_RINVDFTMSGID", ClassConfiguration},
	0x64:  {"ESME_RX_T_APPN", ClassTemporary},
	0x65:  {"ESME_RX_P_APPN", ClassPermanent},
	0x66:  {"ESME_RX_R_APPN", ClassPermanent},
	0x67:  {"ESME_RQUERYFAIL", ClassTemporary},
	0xC0:  {"ESME_RINVOPTPARSTREAM", ClassConfiguration},
	0xC1:  {"ESME_ROPTPARNOTALLWD", ClassConfiguration},
	0xC2:  {"ESME_RINVPARLEN", ClassConfiguration},
	0xC3:  {"ESME_RMISSINGOPTPARAM", ClassConfiguration},
	0xC4:  {"ESME_RINVOPTPARAMVAL", ClassConfiguration},
	0xFE:  {"ESME_RDELIVERYFAILURE", ClassTemporary},
	0xFF:  {"ESME_RUNKNOWNERR", ClassTemporary},
	0x104: {"ESME_RINVDCS", ClassConfiguration},
}

// String returns the specification's name ("ESME_RTHROTTLED"), or the value in
// hexadecimal for a vendor's status ("0x00000401").
func (s Status) String() string {
	if i, ok := statuses[s]; ok {
		return i.name
	}
	return fmt.Sprintf("0x%08X", uint32(s))
}

// label is String for metrics: one value for all vendor statuses.
func (s Status) label() string {
	if i, ok := statuses[s]; ok {
		return i.name
	}
	return "other"
}

// Class returns how the sender of a submit_sm should react to the status.
func (s Status) Class() Class {
	if i, ok := statuses[s]; ok {
		return i.class
	}
	return ClassTemporary
}

// StatusError is an error status in a carrier's response.
type StatusError struct {
	Command string // what was refused: "submit_sm", "bind_transceiver", …
	Status  Status
}

func (e *StatusError) Error() string {
	if e.Status == StatusOK { // of a generic_nack
		return fmt.Sprintf("smpp: %s answered with generic_nack", e.Command)
	}
	return fmt.Sprintf("smpp: %s refused: %s", e.Command, e.Status)
}
