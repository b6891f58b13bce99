package configs

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"

	"intumwa/dispatcher"
	"intumwa/smpp"
	"intumwa/sms"
)

// Word is the value of a key that takes one of a few words: what the word means to the room that it is for. Any other
// word is a mistake of the file, told with the words that are known.
type Word[T comparable] struct{ Is T }

// Words whose meaning is no type of another room, or only some of its values.
type (
	// LogFormat is how the log is written.
	LogFormat string
	// MailTLS is that of mail.Options.
	MailTLS string
	// Outcome is what a receipt's state says of a segment; Pending for nothing.
	Outcome sms.Status
	// Timeout is what a message becomes whose receipt never came.
	Timeout sms.Status
)

type word struct {
	text string
	is   any
}

// words has all words of the file, in the order in which they are told.
var words = map[reflect.Type][]word{
	reflect.TypeFor[slog.Level]():           {{"debug", slog.LevelDebug}, {"info", slog.LevelInfo}, {"warn", slog.LevelWarn}, {"error", slog.LevelError}},
	reflect.TypeFor[LogFormat]():            {{"text", LogFormat("text")}, {"json", LogFormat("json")}},
	reflect.TypeFor[MailTLS]():              {{"starttls", MailTLS("starttls")}, {"tls", MailTLS("tls")}, {"none", MailTLS("none")}},
	reflect.TypeFor[Outcome]():              {{"sent", Outcome(sms.Sent)}, {"failed", Outcome(sms.Failed)}, {"none", Outcome(sms.Pending)}},
	reflect.TypeFor[Timeout]():              {{"failed", Timeout(sms.Failed)}, {"sent", Timeout(sms.Sent)}},
	reflect.TypeFor[smpp.Class]():           {{"throttled", smpp.ClassThrottled}, {"temporary", smpp.ClassTemporary}, {"permanent", smpp.ClassPermanent}, {"unroutable", smpp.ClassUnroutable}, {"configuration", smpp.ClassConfiguration}},
	reflect.TypeFor[smpp.BindMode]():        {{"transceiver", smpp.Transceiver}, {"transmitter_receiver", smpp.TransmitterReceiver}},
	reflect.TypeFor[dispatcher.Refund]():    {{"unsubmitted", dispatcher.RefundUnsubmitted}, {"failed", dispatcher.RefundFailed}, {"never", dispatcher.RefundNever}},
	reflect.TypeFor[dispatcher.Confirm]():   {{"receipt", dispatcher.ConfirmByReceipt}, {"submit", dispatcher.ConfirmBySubmit}},
	reflect.TypeFor[dispatcher.IDFormat]():  {{"auto", dispatcher.IDAuto}, {"same", dispatcher.IDSame}, {"hex_to_decimal", dispatcher.IDHexToDecimal}, {"decimal_to_hex", dispatcher.IDDecimalToHex}},
	reflect.TypeFor[dispatcher.Concat]():    {{"udh8", dispatcher.ConcatUDH8}, {"udh16", dispatcher.ConcatUDH16}, {"sar", dispatcher.ConcatSAR}, {"payload", dispatcher.ConcatPayload}},
	reflect.TypeFor[dispatcher.Alphabet]():  {{"gsm7", dispatcher.AlphabetGSM7}, {"latin1", dispatcher.AlphabetLatin1}, {"ascii", dispatcher.AlphabetASCII}},
	reflect.TypeFor[dispatcher.Validity]():  {{"relative", dispatcher.ValidityRelative}, {"absolute", dispatcher.ValidityAbsolute}, {"none", dispatcher.ValidityNone}},
	reflect.TypeFor[dispatcher.Ambiguous](): {{"resend", dispatcher.AmbiguousResend}, {"hold", dispatcher.AmbiguousHold}, {"fail", dispatcher.AmbiguousFail}},
}

// UnmarshalText takes one of the words. Its error does not quote the text.
func (w *Word[T]) UnmarshalText(text []byte) error {
	var known []string
	for _, word := range words[reflect.TypeFor[T]()] {
		if word.text == string(text) {
			w.Is = word.is.(T) //nolint:forcetypeassert // words is a table of T's own values: a test reads it all
			return nil
		}
		known = append(known, word.text)
	}
	return errors.New("must be one of " + strings.Join(known, ", "))
}

// String is the word as the file has it.
func (w Word[T]) String() string {
	for _, word := range words[reflect.TypeFor[T]()] {
		if word.is == any(w.Is) {
			return word.text
		}
	}
	return fmt.Sprintf("no word (%v)", w.Is)
}

// MarshalText is String, for encoders.
func (w Word[T]) MarshalText() ([]byte, error) { return []byte(w.String()), nil }
