package carriersim

import "strings"

// faultsDo says of each fault, by its JSON name and in the order of Faults, what
// it does.
var faultsDo = [...]struct{ name, does string }{
	{"refuse_connections", "Connections are accepted by TCP and closed at once."},
	{"bind_status", "Every bind is refused with it."},
	{"bind_silent", "Binds get no answer."},
	{"half_open", "Takes everything and says nothing any more."},
	{"stop_reading", "The TCP window fills up."},
	{"enquire_silent", "An enquire_link gets no answer."},
	{"enquire_every", "This carrier sends enquire_link so often."},
	{"submit_status", "Every submit_sm is refused with it."},
	{"submit_silent", "A submit_sm is accepted, receipts come, the response does not."},
	{"refuse_ratio", "This share of submit_sm is refused with `refuse_status`."},
	{"refuse_status", "That command_status; ESME_RTHROTTLED when zero."},
	{"nack_every", "Every n-th submit_sm is answered with generic_nack."},
	{"empty_ids", "Messages are accepted with an empty message_id."},
	{"wrong_sequence", "A response to nobody precedes each response."},
	{"resp_twice", "Each response comes twice."},
	{"congestion", "The congestion_state in responses, 1-100; 0 = absent."},
	{"resp_delay", "So long a wait before each response."},
	{"resp_jitter", "Up to so much longer, so that responses change order."},
	{"no_receipts", "No receipts at all."},
	{"receipt_first", "Every receipt precedes its response."},
	{"receipt_copies", "Each receipt so many times."},
	{"receipt_loss", "This share of receipts is never sent."},
	{"hold_receipts", "Receipts wait until this is off again."},
	{"unknown_per_sec", "Receipts a second for ids never given."},
	{"flood_per_sec", "Deliveries a second on each session, whether they are answered or not, never again."},
	{"flood_octets", "Octets of text in each, in message_payload above 254; up to 65,000."},
	{"flood_source", "Digits of their source_addr, 11 when zero; up to 65,000."},
	{"flood_receipts", "They are receipts for ids never given, else texts of a handset."},
	{"unbind_after", "Unbind after so many submit_sm of a session."},
	{"drop_after", "Connection closed instead of the answer to submit_sm number n of a session."},
	{"half_pdu_after", "The same, behind half a response."},
	{"reset_on_drop", "Closing sends RST at once, what was not yet sent is lost."},
	{"garbage_after", "Text that is no PDU, in place of the answer to submit_sm number n."},
	{"lie_after", "A header with `lie_length` in place of the answer to submit_sm number n."},
	{"lie_length", "The command_length of that header."},
	{"strange_command", "Each response is preceded by a request with an unknown command_id."},
}

// FaultsTable is Faults as a table in Markdown, for documents.
func FaultsTable() string {
	var table strings.Builder
	table.WriteString("| fault | what the carrier does |\n|---|---|\n")
	for _, f := range faultsDo {
		table.WriteString("| `" + f.name + "` | " + f.does + " |\n")
	}
	return table.String()
}
