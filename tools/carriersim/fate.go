package carriersim

import (
	"slices"
	"strings"
)

// Fate is a row of the table that maps the last two digits of a recipient to the
// outcome of a message. Messages to 00, and to endings that are not in the table, are
// delivered. Options.NoFates turns the table off.
//
//	00 delivered            01 undeliverable        02 rejected             03 throttled twice
//	04 system error once    05 queue full once      06 silent               07 no receipt
//	08 receipt first        09 late receipt         10 hex then decimal id  11 receipt 10 times
//	12 contradictory        13 enroute first        14 expired              15 REJECTD
//	16 ACCEPTD              17 UNKNOWN              18 receipt in TLVs      19 in message_payload
//	20 in data_sm           21 id case differs      22 late response        23 dropped
//	24 half a PDU           25 empty id             26 forged receipt       27 intermediate first
//	28 segment 2 fails      29 segment 2 rejected   30 DELETED              31 unheard-of stat first
//	32 failed, delivered    33 long dates, vendor   34 sparse receipt       35 TLVs against the text
//	36 taken, unanswered    37 taken, dropped       38 answered twice       39 stranger's answer first
//	40 generic_nack         41 submit failed        42 always throttled     43 queue always full
//	44 always system error  45 wrong source TON     46 wrong service type   47 permanent receiver error
//	48 temporary once       49 vendor's error once  50 UUID                 51 64-character id
//	52 decimal then hex id  53 padded id            54 receipt of segment 1 55 segment 2 unreceipted
//	56 rejected, no body    57 unbind               58 garbage              59 lying length
//	60 congestion           61 stranger's receipt   62 UDH bit, no UDH      63 the handset answers
//	64 padded receipt       65 alert_notification   66 out of order         67 enroute only
//	68 TLVs under 0         69 text under 0         70 long names           71 equals signs
//	72 digits               73 0x                   74 little-endian TLVs   75 message_state 0
//	76 another id in a TLV  77 FAILED               78 STOP under 0x04      79 STOP under 0x40
//	80 STOP, damaged tail   81 STOP from 079…       82 STOP in septets      83 ARRÊT in UTF-8
//	84 no UDH bit
type Fate struct {
	Digits string `json:"digits"` // the last two digits of the recipient
	Name   string `json:"name"`   // unique, lower case
	Does   string `json:"does"`   // what this carrier does, in one sentence
	// the expected status of the message: sent, failed, pending, or one that depends on the gateway's settings
	Ends string `json:"ends"`
}

// Fates returns the table in the order of the digits.
func Fates() []Fate {
	list := make([]Fate, 0, len(scripts))
	for i := range scripts {
		list = append(list, scripts[i].Fate)
	}
	return list
}

// script is the implementation of a fate.
type script struct {
	Fate
	segment      byte   // only this segment of a concatenated message; 0 = all
	refuse       Status // the status of the response …
	times        uint8  // … this many times, then it is accepted; 0 = always
	answer       answer
	after        after
	emptyID      bool
	ids          IDFormat // instead of the carrier's own format; IDDecimal = the carrier's own
	congestion   uint8
	receiptFirst bool
	notices      []notice // deliveries about an accepted message; nil = a receipt with DELIVRD
	silentRest   bool     // the other segments get no receipt
}

type answer uint8

const (
	answerNormal        answer = iota
	answerLate                 // after Options.LateResponse
	answerNone                 // no response; the message is not accepted
	answerNoneCarried          // no response; the message is accepted
	answerDrop                 // the connection is closed instead; the message is not accepted
	answerHalf                 // the same, after half a response
	answerLost                 // the connection is closed instead; the message is accepted
	answerTwice                // two responses
	answerWrongSequence        // a response with an unused sequence_number, then the right one
	answerNack                 // generic_nack with ESME_RINVCMDID
	answerBodyless             // the refusal has no body
	answerSwapped              // 100 ms late, so later ones overtake it
)

type after uint8

const (
	afterNothing after = iota
	afterUnbind
	afterGarbage
	afterLie
)

// notice is one deliver_sm (or data_sm) about a message.
type notice struct {
	kind          noticeKind
	state         State
	stat          string        // instead of the state's text
	style         *ReceiptStyle // instead of the carrier's own
	copies        int           // 0 = one
	late          bool          // after Options.LateReceipt
	echo          bool          // with user_message_reference, regardless of the options
	contradictory bool          // the text has another id and UNDELIV; the TLVs are right
	foreign       bool          // with an unknown id
	said          *said         // of noticeAnswer; nil: a plain text
}

type noticeKind uint8

const (
	noticeReceipt      noticeKind = iota // esm_class 0x04
	noticeIntermediate                   // esm_class 0x20
	noticeForged                         // a handset's text that looks like a receipt, esm_class 0
	noticeAnswer                         // a handset's text
	noticeAlert                          // alert_notification
)

var delivered = []notice{{state: Delivered}}

func states(list ...State) []notice {
	notices := make([]notice, 0, len(list))
	for _, s := range list {
		notices = append(notices, notice{state: s})
	}
	return notices
}

func styled(state State, style ReceiptStyle) []notice {
	return []notice{{state: state, style: &style}}
}

var scripts = slices.Concat(plainScripts, oddScripts)

var plainScripts = []script{
	{Fate: Fate{"00", "delivered", "Accepted, receipt DELIVRD. So is every ending that is not in this table.", "sent"}},
	{Fate: Fate{"01", "undeliverable", "Accepted, receipt UNDELIV.", "failed"}, notices: states(Undeliverable)},
	{Fate: Fate{"02", "rejected", "Refused for good: ESME_RINVDSTADR.", "failed"}, refuse: InvalidDest},
	{Fate: Fate{"03", "throttled twice", "ESME_RTHROTTLED twice, then accepted and delivered.", "sent"}, refuse: Throttled,
		times: 2},
	{Fate: Fate{"04", "system error once", "ESME_RSYSERR once, then accepted and delivered.", "sent"}, refuse: SystemError,
		times: 1},
	{Fate: Fate{"05", "queue full once", "ESME_RMSGQFUL once, then accepted and delivered.", "sent"}, refuse: QueueFull,
		times: 1},
	{Fate: Fate{"06", "silent", "Never answers submit_sm and does not carry it.", "pending, then as configured"},
		answer: answerNone},
	{Fate: Fate{"07", "no receipt", "Accepted, no receipt ever.", "on_receipt_timeout"}, notices: []notice{}},
	{Fate: Fate{"08", "receipt first", "The receipt comes before the submit_sm_resp.", "sent"}, receiptFirst: true},
	{Fate: Fate{"09", "late receipt", "The receipt comes late (10 s).", "sent"},
		notices: []notice{{state: Delivered, late: true}}},
	{Fate: Fate{"10", "hex then decimal id", "Id in hex in the response, in decimal in the receipt.", "sent"},
		ids: IDHexThenDecimal},
	{Fate: Fate{"11", "receipt ten times", "The same receipt ten times.", "sent"},
		notices: []notice{{state: Delivered, copies: 10}}},
	{Fate: Fate{"12", "contradictory", "Receipt DELIVRD, then UNDELIV: the first holds.", "sent"},
		notices: states(Delivered, Undeliverable)},
	{Fate: Fate{"13", "enroute first", "Receipt ENROUTE, then DELIVRD.", "sent"}, notices: states(Enroute, Delivered)},
	{Fate: Fate{"14", "expired", "Accepted, receipt EXPIRED.", "failed"}, notices: states(Expired)},
	{Fate: Fate{"15", "rejected later", "Accepted, receipt REJECTD.", "failed"}, notices: states(Rejected)},
	{Fate: Fate{"16", "accepted only", "Accepted, receipt ACCEPTD and nothing more.", "sent"}, notices: states(Accepted)},
	{Fate: Fate{"17", "unknown", "Accepted, receipt UNKNOWN and nothing more.", "on_receipt_timeout"},
		notices: states(Unknown)},
	{Fate: Fate{"18", "receipt in TLVs", "The receipt has TLVs only, short_message is empty.", "sent"},
		notices: styled(Delivered, ReceiptStyle{Form: ReceiptTLV})},
	{Fate: Fate{"19", "receipt in message_payload", "The receipt's text travels in message_payload.", "sent"},
		notices: styled(Delivered, ReceiptStyle{Form: ReceiptPayload})},
	{Fate: Fate{"20", "receipt in data_sm", "The receipt is a data_sm.", "sent"},
		notices: styled(Delivered, ReceiptStyle{Form: ReceiptPayload, DataSM: true})},
	{Fate: Fate{"21", "id case differs", "Id in upper-case hex in the response, in lower case in the receipt.", "sent"},
		ids: IDCase},
	{Fate: Fate{"22", "late response", "The submit_sm_resp comes late (3 s).", "sent"}, answer: answerLate},
	{Fate: Fate{"23", "dropped", "The connection is closed before the answer, once; the message was not taken.",
		"sent, or as set by on_ambiguous"}, answer: answerDrop, times: 1},
	{Fate: Fate{"24", "half a PDU", "Half a submit_sm_resp, then the connection is closed, once; the message " +
		"was not taken.", "sent, or as set by on_ambiguous"}, answer: answerHalf, times: 1},
	{Fate: Fate{"25", "empty id", "Accepted with an empty message_id, no receipt can be matched.", "on_receipt_timeout"},
		emptyID: true},
	{Fate: Fate{"26", "forged receipt", "A handset sends a text like a DELIVRD receipt (esm_class 0); the true receipt " +
		"has UNDELIV.", "failed"}, notices: []notice{{kind: noticeForged, state: Delivered}, {state: Undeliverable}}},
	{Fate: Fate{"27", "intermediate first", "An intermediate notification (esm_class 0x20), then the receipt DELIVRD.",
		"sent"}, notices: []notice{{kind: noticeIntermediate, state: Enroute}, {state: Delivered}}},
	{Fate: Fate{"28", "second segment undeliverable", "Receipt UNDELIV for the second segment, DELIVRD for the others.",
		"failed when it has two segments or more"}, segment: 2, notices: states(Undeliverable)},
	{Fate: Fate{"29", "second segment rejected", "ESME_RINVDSTADR for the second segment, the others are delivered.",
		"failed when it has two segments or more"}, segment: 2, refuse: InvalidDest},
	{Fate: Fate{"30", "deleted", "Accepted, receipt DELETED.", "failed"}, notices: states(Deleted)},
	{Fate: Fate{"31", "unheard-of stat first", "A receipt with stat BUFFRED and no known state, then DELIVRD.", "sent"},
		notices: []notice{{state: Enroute, stat: "BUFFRED"}, {state: Delivered}}},
	{Fate: Fate{"32", "failed, then delivered", "Receipt UNDELIV, then DELIVRD: the first holds.", "failed"},
		notices: states(Undeliverable, Delivered)},
	{Fate: Fate{"33", "long dates and vendor fields",
		"A receipt with 12-digit dates, four-digit err, fields and TLVs of the vendor's own.", "sent"},
		notices: styled(Delivered, ReceiptStyle{Form: ReceiptTextTLV, Seconds: true, Vendor: true})},
	{Fate: Fate{"34", "sparse receipt", "A receipt of stat and id only, in that order and in capitals.", "sent"},
		notices: styled(Delivered, ReceiptStyle{Sparse: true})},
	{Fate: Fate{"35", "TLVs against the text", "The receipt's text has another id and UNDELIV, its TLVs DELIVRD: the " +
		"TLVs count.", "sent"}, notices: []notice{{state: Delivered, style: &ReceiptStyle{Form: ReceiptTextTLV},
		contradictory: true}}},
	{Fate: Fate{"36", "taken, unanswered", "Carried but never answered; the receipt echoes user_message_reference.",
		"sent"}, answer: answerNoneCarried, notices: []notice{{state: Delivered, echo: true}}},
	{Fate: Fate{"37", "taken, dropped", "Carried, but the connection is closed before the answer, once; the receipt " +
		"echoes user_message_reference.", "sent"}, answer: answerLost, times: 1,
		notices: []notice{{state: Delivered, echo: true}}},
	{Fate: Fate{"38", "answered twice", "The submit_sm_resp comes twice.", "sent"}, answer: answerTwice},
	{Fate: Fate{"39", "stranger's answer first", "A submit_sm_resp with an unused sequence_number comes before " +
		"the right one.", "sent"}, answer: answerWrongSequence},
	{Fate: Fate{"40", "generic_nack", "Answered with generic_nack (ESME_RINVCMDID).", "failed or pending: configuration"},
		answer: answerNack},
	{Fate: Fate{"41", "submit failed once", "ESME_RSUBMITFAIL once, then accepted and delivered.", "sent"},
		refuse: SubmitFailed, times: 1},
	{Fate: Fate{"42", "always throttled", "ESME_RTHROTTLED every time.", "failed when the validity is over"},
		refuse: Throttled},
	{Fate: Fate{"43", "queue always full", "ESME_RMSGQFUL every time.", "failed when the validity is over"},
		refuse: QueueFull},
	{Fate: Fate{"44", "always system error", "ESME_RSYSERR every time.", "failed when the validity is over"},
		refuse: SystemError},
	{Fate: Fate{"45", "wrong source TON", "ESME_RINVSRCTON every time: looks like a configuration error.",
		"pending, the link's breaker counts"}, refuse: InvalidSourceTON},
	{Fate: Fate{"46", "wrong service type", "ESME_RINVSERTYP every time: looks like a configuration error.",
		"pending, the link's breaker counts"}, refuse: InvalidService},
	{Fate: Fate{"47", "permanent receiver error", "ESME_RX_P_APPN.", "failed"}, refuse: ReceiverPermanent},
	{Fate: Fate{"48", "temporary receiver error", "ESME_RX_T_APPN once, then accepted and delivered.", "sent"},
		refuse: ReceiverTemporary, times: 1},
	{Fate: Fate{"49", "vendor's error once", "0x00000400 once, then accepted and delivered.", "sent"}, refuse: VendorError,
		times: 1},
	{Fate: Fate{"50", "UUID", "The id is a UUID.", "sent"}, ids: IDUUID},
	{Fate: Fate{"51", "64-character id", "The id has 64 characters.", "sent"}, ids: IDLong},
	{Fate: Fate{"52", "decimal then hex id", "Id in decimal in the response, in hex in the receipt.", "sent"},
		ids: IDDecimalThenHex},
	{Fate: Fate{"53", "padded id", "Id of 20 digits with leading zeros in the response, without them in the receipt.",
		"sent"}, ids: IDZeroPadded},
	{Fate: Fate{"54", "first segment's receipt only", "Every segment is accepted, only the first gets a receipt.",
		"sent with one segment, else on_receipt_timeout"}, segment: 1, silentRest: true},
	{Fate: Fate{"55", "second segment unreceipted", "Every segment but the second gets a receipt.",
		"on_receipt_timeout with two segments or more"}, segment: 2, notices: []notice{}},
	{Fate: Fate{"56", "rejected without a body", "ESME_RINVDSTADR in a response that has no body.", "failed"},
		refuse: InvalidDest, answer: answerBodyless},
	{Fate: Fate{"57", "unbind", "Accepted and delivered, and the carrier unbinds.", "sent"}, after: afterUnbind},
	{Fate: Fate{"58", "garbage", "Accepted and delivered, then text that is no PDU follows.", "sent"},
		after: afterGarbage},
	{Fate: Fate{"59", "lying length", "Accepted and delivered, then a header with command_length 0xFFFFFFFF follows.",
		"sent"}, after: afterLie},
	{Fate: Fate{"60", "congestion", "Accepted and delivered, the response carries congestion_state 90.", "sent"},
		congestion: 90},
	{Fate: Fate{"61", "stranger's receipt", "A receipt UNDELIV for an id never given, then the right one DELIVRD.",
		"sent"}, notices: []notice{{state: Undeliverable, foreign: true}, {state: Delivered}}},
	{Fate: Fate{"62", "UDH bit without UDH", "The receipt's esm_class has the UDH bit set (0x44) although no UDH follows.",
		"sent"}, notices: styled(Delivered, ReceiptStyle{UDHI: true})},
	{Fate: Fate{"63", "the handset answers", "Delivered, and the handset sends a text back.", "sent"},
		notices: []notice{{state: Delivered}, {kind: noticeAnswer}}},
	{Fate: Fate{"64", "padded receipt", "Id without leading zeros in the response, with them in the receipt.", "sent"},
		ids: IDTrimmed},
	{Fate: Fate{"65", "alert_notification", "An alert_notification comes, then the receipt DELIVRD.", "sent"},
		notices: []notice{{kind: noticeAlert}, {state: Delivered}}},
	{Fate: Fate{"66", "out of order", "The response comes 100 ms late, so that others overtake it.", "sent"},
		answer: answerSwapped},
	{Fate: Fate{"67", "enroute only", "Receipt ENROUTE and nothing more.", "on_receipt_timeout"},
		notices: states(Enroute)},
}

// defaultScript is the script of recipients whose digits are not in the table.
var defaultScript = &scripts[0]

var scriptByDigits = func() (table [100]*script) {
	for i := range table {
		table[i] = defaultScript
	}
	for i := range scripts {
		d := scripts[i].Digits
		table[(d[0]-'0')*10+d[1]-'0'] = &scripts[i]
	}
	return table
}()

// scriptOf returns the script of a recipient.
func scriptOf(recipient []byte) *script {
	n := len(recipient)
	if n < 2 || !digit(recipient[n-2]) || !digit(recipient[n-1]) {
		return defaultScript
	}
	return scriptByDigits[(recipient[n-2]-'0')*10+recipient[n-1]-'0']
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// FatesTable returns Fates as a Markdown table.
func FatesTable() string {
	var table strings.Builder
	table.WriteString("| last digits | fate | what the carrier does | what the message becomes |\n|---|---|---|---|\n")
	for _, f := range Fates() {
		table.WriteString("| `" + f.Digits + "` | " + f.Name + " | " + f.Does + " | " + f.Ends + " |\n")
	}
	return table.String()
}
