package intake

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"intumwa/accounts"
	"intumwa/billing"
	"intumwa/internal/otp"
	"intumwa/internal/postgres"
	"intumwa/messages"
	"intumwa/sms"
)

// codeTexts are the texts of a one-time code by the user's language. Each fits into one segment of GSM-7.
var codeTexts = map[string]string{
	"en": "Your Intumwa verification code is {code}. Do not share it.",
	"fr": "Votre code de vérification Intumwa est {code}. Ne le donnez à personne.",
	"rn": "Kode yawe ya Intumwa ni {code}. Ntuyihe uwundi muntu.",
}

// VerifyNumber makes a number the user's unverified test number and sends it a one-time code, in the user's language. The
// code counts as the company's own, and not as a free one, if the company is approved and has credits: both are acts of
// an operator, so no stranger can make them. The errors are RefuseNoCarrier and those of
// [accounts.Accounts.StartVerification].
func (in *Intake) VerifyNumber(ctx context.Context, user accounts.User, company *accounts.Company, network string, number sms.Number) error {
	if _, carried := in.Route(number); !carried {
		return RefuseNoCarrier
	}
	r := accounts.CodeRequest{User: user.ID, Number: number, Network: network}
	if company != nil {
		credits, err := billing.New(in.pool).Balance(ctx, company.ID)
		if err != nil {
			return err
		}
		r.Company, r.Own = company.ID, company.Approved && credits > 0
	}
	code, err := in.accounts.StartVerification(ctx, r)
	if err != nil {
		return err
	}
	return in.SendCode(ctx, user.ID, number, user.Language, code, accounts.CodeLife)
}

// SendCode sends a one-time code to a number that its owner wants to verify (rule api 4.4.4), in the user's language
// (accounts.User), or else in English. The message expires with the code.
func (in *Intake) SendCode(ctx context.Context, user int64, number sms.Number, language string, code otp.Secret, life time.Duration) error {
	text := cmp.Or(codeTexts[language], codeTexts["en"])
	_, err := in.SendOwn(ctx, Own{User: user, Number: number, Text: strings.Replace(text, "{code}", code.Mask(), 1), Secret: code, Life: life})
	return err
}

// Own is a message of the gateway itself. It belongs to no company, costs neither credits nor quota and emits no webhook.
type Own struct {
	User    int64 // the user who caused it; 0: an operator
	Number  sms.Number
	Carrier string // "": the carrier of the number
	Sender  string // "": the test sender
	Text    string
	Secret  otp.Secret    // of the one-time code whose mask the text has; nil: none
	Life    time.Duration // after which it is given up
}

// SendOwn accepts a message of the gateway and returns its ULID.
func (in *Intake) SendOwn(ctx context.Context, own Own) (ulid.ULID, error) {
	if own.Carrier == "" {
		var ok bool
		if own.Carrier, ok = in.Route(own.Number); !ok {
			return ulid.ULID{}, in.refused(RefuseNoCarrier)
		}
	}
	encoding, segments := sms.Count(own.Text)
	m := &messages.Message{
		ULID: in.ulids.next(), UserID: own.User, Number: own.Number, Sender: cmp.Or(own.Sender, in.opts.TestSender), Body: own.Text, Secret: own.Secret,
		Encoding: encoding, Segments: segments, Carrier: own.Carrier, ExpireAt: postgres.Now().Add(own.Life), // also at a second carrier
	}
	r := &request{user: own.User, ref: m.ULID, kind: kindCode, segments: segments, messages: []*messages.Message{m},
		response: func(int64) any { return nil }, came: time.Now()}
	return m.ULID, in.committer.submit(ctx, r)
}
