package intake

import (
	"context"
	"strings"
	"time"

	"intumwa/accounts"
	"intumwa/messages"
	"intumwa/sms"
)

// Serves reports whether a carrier takes the number; if not, the refusal says so.
func (in *Intake) Serves(number sms.Number) error {
	if _, ok := in.routes.Load().Carrier(number); !ok {
		return RefuseNoCarrier
	}
	return nil
}

// codeTexts say a one-time code in the languages that users are written to in. Each
// fits into one segment of GSM-7.
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

// SendCode sends a one-time code to a number that its owner wants to verify
// (rule api 4.4.4), in a language that users are written to in (accounts.User);
// English if it is another. It is the gateway's own message: it belongs to no company,
// costs neither credits nor quota and emits no webhook. It is given up when the
// code is no good any more.
func (in *Intake) SendCode(ctx context.Context, p *accounts.Principal, number sms.Number, language, code string, life time.Duration) error {
	carrier, ok := in.routes.Load().Carrier(number)
	if !ok {
		return in.refused(RefuseNoCarrier)
	}
	body := codeText(language, code)
	encoding, segments := sms.Count(body)
	m := &messages.Message{
		ULID: in.ulids.one(), UserID: p.UserID, Number: number, Sender: in.opts.TestSender, Body: body,
		Encoding: encoding, Segments: segments, Carrier: carrier, Validity: life,
	}
	r := &request{user: p.UserID, ref: m.ULID, kind: kindCode, segments: segments, messages: []*messages.Message{m},
		response: func(int64) any { return nil }}
	return in.committer.submit(ctx, r)
}
