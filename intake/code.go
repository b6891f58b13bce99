package intake

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"intumwa/accounts"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/sms"
)

// Serves returns the refusal of a number without a carrier; nil when a carrier takes it.
func (in *Intake) Serves(number sms.Number) error {
	if _, ok := in.routes.Load().Carrier(number); !ok {
		return RefuseNoCarrier
	}
	return nil
}

// codeTexts are the texts of a one-time code by the user's language. Each fits into one segment of GSM-7.
var codeTexts = map[string]string{
	"en": "Your Intumwa verification code is {code}. Do not share it.",
	"fr": "Votre code de vérification Intumwa est {code}. Ne le donnez à personne.",
	"rn": "Kode yawe ya Intumwa ni {code}. Ntuyihe uwundi muntu.",
}

func codeText(language, code string) string {
	text, known := codeTexts[language]
	if !known {
		text = codeTexts["en"]
	}
	return strings.Replace(text, "{code}", code, 1)
}

// SendCode sends a one-time code to a number that its owner wants to verify (rule api 4.4.4), in the user's language
// (accounts.User), or else in English. The message expires with the code.
func (in *Intake) SendCode(ctx context.Context, p *accounts.Principal, number sms.Number, language, code string, life time.Duration) error {
	_, err := in.SendOwn(ctx, Own{User: p.UserID, Number: number, Text: codeText(language, code), Life: life})
	return err
}

// Own is a message of the gateway itself. It belongs to no company, costs neither credits nor quota and emits no webhook.
type Own struct {
	User    int64 // the user who caused it; 0: an operator
	Number  sms.Number
	Carrier string // "": the carrier of the number
	Sender  string // "": the test sender
	Text    string
	Life    time.Duration // after which it is given up
}

// SendOwn accepts a message of the gateway and returns its ULID.
func (in *Intake) SendOwn(ctx context.Context, own Own) (ulid.ULID, error) {
	if own.Carrier == "" {
		carrier, ok := in.routes.Load().Carrier(own.Number)
		if !ok {
			return ulid.ULID{}, in.refused(RefuseNoCarrier)
		}
		own.Carrier = carrier
	}
	encoding, segments := sms.Count(own.Text)
	m := &messages.Message{
		ULID: in.ulids.one(), UserID: own.User, Number: own.Number, Sender: cmp.Or(own.Sender, in.opts.TestSender), Body: own.Text,
		Encoding: encoding, Segments: segments, Carrier: own.Carrier, ExpireAt: postgres.Now().Add(own.Life), // also at a second carrier
	}
	r := &request{user: own.User, ref: m.ULID, kind: kindCode, segments: segments, messages: []*messages.Message{m},
		response: func(int64) any { return nil }, came: time.Now()}
	return m.ULID, in.committer.submit(ctx, r)
}
