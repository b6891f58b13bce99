package smpp

import "fmt"

// Status is an SMPP command_status.
type Status uint32

// The statuses this package or its callers name.
const (
	StatusOK             Status = 0x00000000
	StatusInvMsgLen      Status = 0x00000001
	StatusInvCmdLen      Status = 0x00000002
	StatusInvCmdID       Status = 0x00000003
	StatusInvBindState   Status = 0x00000004
	StatusAlreadyBound   Status = 0x00000005
	StatusInvPriority    Status = 0x00000006
	StatusInvRegistered  Status = 0x00000007
	StatusSysErr         Status = 0x00000008
	StatusInvSrcAddr     Status = 0x0000000A
	StatusInvDstAddr     Status = 0x0000000B
	StatusInvMessageID   Status = 0x0000000C
	StatusBindFailed     Status = 0x0000000D
	StatusInvPassword    Status = 0x0000000E
	StatusInvSystemID    Status = 0x0000000F
	StatusCancelFailed   Status = 0x00000011
	StatusReplaceFailed  Status = 0x00000013
	StatusMsgQueueFull   Status = 0x00000014
	StatusInvServiceType Status = 0x00000015
	StatusInvNumDests    Status = 0x00000033
	StatusInvESMClass    Status = 0x00000043
	StatusSubmitFailed   Status = 0x00000045
	StatusInvSrcTON      Status = 0x00000048
	StatusInvSrcNPI      Status = 0x00000049
	StatusInvSysType     Status = 0x00000053
	StatusInvReplaceFlag Status = 0x00000054
	StatusThrottled      Status = 0x00000058
	StatusInvSchedule    Status = 0x00000061
	StatusInvExpiry      Status = 0x00000062
	StatusInvDefaultMsg  Status = 0x00000063
	StatusTemporary      Status = 0x00000064
	StatusQueryFailed    Status = 0x00000067
	StatusInvOptStream   Status = 0x000000C0
	StatusUnknown        Status = 0x000000FF
	StatusInvDataCoding  Status = 0x00000104
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
	words string
}

// statuses is the error code table of SMPP 3.4 (5.1.3), with those of 5.0 (4.7.6) that are
// about our account or settings, and the class of each status in a submit_sm_resp.
var statuses = map[Status]statusInfo{
	0x00:  {"ESME_ROK", ClassOK, "accepted"},
	0x01:  {"ESME_RINVMSGLEN", ClassPermanent, "the message is too long for the carrier"},
	0x02:  {"ESME_RINVCMDLEN", ClassConfiguration, "the carrier cannot read the command"},
	0x03:  {"ESME_RINVCMDID", ClassConfiguration, "the carrier does not know the command"},
	0x04:  {"ESME_RINVBNDSTS", ClassSession, "the carrier does not regard the link as bound"},
	0x05:  {"ESME_RALYBND", ClassTemporary, "the carrier says that the link is bound already"},
	0x06:  {"ESME_RINVPRTFLG", ClassConfiguration, "the carrier does not accept our priority_flag"},
	0x07:  {"ESME_RINVREGDLVFLG", ClassConfiguration, "the carrier does not accept our registered_delivery"},
	0x08:  {"ESME_RSYSERR", ClassTemporary, "the carrier has an internal error"},
	0x0A:  {"ESME_RINVSRCADR", ClassPermanent, "the carrier does not accept this sender"},
	0x0B:  {"ESME_RINVDSTADR", ClassUnroutable, "the carrier does not accept this number"},
	0x0C:  {"ESME_RINVMSGID", ClassTemporary, "the carrier does not know the message id"},
	0x0D:  {"ESME_RBINDFAIL", ClassTemporary, "the carrier says that the bind failed"},
	0x0E:  {"ESME_RINVPASWD", ClassTemporary, "the carrier refuses our password"},
	0x0F:  {"ESME_RINVSYSID", ClassTemporary, "the carrier refuses our system_id"},
	0x11:  {"ESME_RCANCELFAIL", ClassTemporary, "the carrier could not cancel"},
	0x13:  {"ESME_RREPLACEFAIL", ClassTemporary, "the carrier could not replace"},
	0x14:  {"ESME_RMSGQFUL", ClassThrottled, "the carrier's queue is full"},
	0x15:  {"ESME_RINVSERTYP", ClassConfiguration, "the carrier does not accept our service_type"},
	0x33:  {"ESME_RINVNUMDESTS", ClassConfiguration, "the carrier does not accept the number of recipients"},
	0x34:  {"ESME_RINVDLNAME", ClassConfiguration, "the carrier does not know the distribution list"},
	0x40:  {"ESME_RINVDESTFLAG", ClassConfiguration, "the carrier does not accept the destination flag"},
	0x42:  {"ESME_RINVSUBREP", ClassConfiguration, "the carrier does not accept submit_sm with replace"},
	0x43:  {"ESME_RINVESMCLASS", ClassConfiguration, "the carrier does not accept our esm_class"},
	0x44:  {"ESME_RCNTSUBDL", ClassConfiguration, "the carrier cannot submit to a distribution list"},
	0x45:  {"ESME_RSUBMITFAIL", ClassTemporary, "the carrier could not take the message"},
	0x48:  {"ESME_RINVSRCTON", ClassConfiguration, "the carrier does not accept the sender's TON"},
	0x49:  {"ESME_RINVSRCNPI", ClassConfiguration, "the carrier does not accept the sender's NPI"},
	0x50:  {"ESME_RINVDSTTON", ClassConfiguration, "the carrier does not accept the recipient's TON"},
	0x51:  {"ESME_RINVDSTNPI", ClassConfiguration, "the carrier does not accept the recipient's NPI"},
	0x53:  {"ESME_RINVSYSTYP", ClassConfiguration, "the carrier does not accept our system_type"},
	0x54:  {"ESME_RINVREPFLAG", ClassConfiguration, "the carrier does not accept replace_if_present_flag"},
	0x55:  {"ESME_RINVNUMMSGS", ClassConfiguration, "the carrier does not accept the number of messages"},
	0x58:  {"ESME_RTHROTTLED", ClassThrottled, "we send faster than the carrier allows"},
	0x61:  {"ESME_RINVSCHED", ClassConfiguration, "the carrier does not accept our schedule_delivery_time"},
	0x62:  {"ESME_RINVEXPIRY", ClassConfiguration, "the carrier does not accept our validity_period"},
	0x63:  {"ESME_RINVDFTMSGID", ClassConfiguration, "the carrier does not know the predefined message"},
	0x64:  {"ESME_RX_T_APPN", ClassTemporary, "the recipient's side has a temporary error"},
	0x65:  {"ESME_RX_P_APPN", ClassPermanent, "the recipient's side has a permanent error"},
	0x66:  {"ESME_RX_R_APPN", ClassPermanent, "the recipient's side refused the message"},
	0x67:  {"ESME_RQUERYFAIL", ClassTemporary, "the carrier could not answer a query"},
	0xC0:  {"ESME_RINVOPTPARSTREAM", ClassConfiguration, "the carrier cannot read our optional parameters"},
	0xC1:  {"ESME_ROPTPARNOTALLWD", ClassConfiguration, "the carrier does not allow an optional parameter"},
	0xC2:  {"ESME_RINVPARLEN", ClassConfiguration, "the carrier does not accept the length of an optional parameter"},
	0xC3:  {"ESME_RMISSINGOPTPARAM", ClassConfiguration, "the carrier misses an optional parameter"},
	0xC4:  {"ESME_RINVOPTPARAMVAL", ClassConfiguration, "the carrier does not accept the value of an optional parameter"},
	0xFE:  {"ESME_RDELIVERYFAILURE", ClassTemporary, "the carrier could not deliver the message"},
	0xFF:  {"ESME_RUNKNOWNERR", ClassTemporary, "the carrier gives no reason"},
	0x100: {"ESME_RSERTYPUNAUTH", ClassConfiguration, "the carrier does not allow us this service_type"},
	0x101: {"ESME_RPROHIBITED", ClassConfiguration, "the carrier does not allow us to send"},
	0x102: {"ESME_RSERTYPUNAVAIL", ClassConfiguration, "the carrier does not offer this service_type"},
	0x103: {"ESME_RSERTYPDENIED", ClassConfiguration, "the carrier denies us this service_type"},
	0x104: {"ESME_RINVDCS", ClassConfiguration, "the carrier does not accept our data_coding"},
}

// String returns the specification's name ("ESME_RTHROTTLED"), or the value in
// hexadecimal for a vendor's status ("0x00000401").
func (s Status) String() string {
	if i, ok := statuses[s]; ok {
		return i.name
	}
	return fmt.Sprintf("0x%08X", uint32(s))
}

// Explained returns String and what it means, in plain words.
func (s Status) Explained() string {
	if i, ok := statuses[s]; ok {
		return i.name + ": " + i.words
	}
	return s.String() + ": a status of the carrier's own"
}

// label is String, with one value for all vendor statuses (vendorStatuses).
func (s Status) label() string {
	if i, ok := statuses[s]; ok {
		return i.name
	}
	return otherStatus
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
