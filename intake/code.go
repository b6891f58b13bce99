package intake

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/oklog/ulid/v2"

	"intumwa/accounts"
	"intumwa/accounts/people"
	"intumwa/accounts/testnumbers"
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

// VerifyNumber makes a number the user's unverified test number and sends it a one-time code, in the user's language.
// The code counts as the company's own, and not as a free one, if the company is approved and has credits: both are
// acts of an operator, so no stranger can make them. The errors are RefuseNoCarrier and those of
// [testnumbers.Store.StartCheck].
func (in *Intake) VerifyNumber(ctx context.Context, user people.User, company *accounts.Company, network string,
	number sms.Number) error {
	made, err := in.own(Own{User: user.ID, Number: number, Text: codePlace, Life: testnumbers.CodeLife})
	if err != nil {
		return err
	}
	r := testnumbers.CodeRequest{User: user.ID, Number: number, Network: network}
	if company != nil {
		credits, err := billing.New(in.pool).Balance(ctx, company.ID)
		if err != nil {
			return err
		}
		r.Company, r.Own = company.ID, company.Approved && credits > 0
	}
	m := made.messages[0]
	made.first = func(ctx context.Context, tx pgx.Tx) (verdict, err error) { // no code counts without its message
		m.Secret, err = in.testNumbers.StartCheck(ctx, tx, r)
		if accounts.ForUser(err) {
			return err, nil
		}
		m.Body = strings.Replace(cmp.Or(codeTexts[user.Language], codeTexts["en"]), "{code}", m.Secret.Mask(), 1)
		m.Encoding, m.Segments = sms.Count(m.Body)
		return nil, err
	}
	if err = in.committer.submit(ctx, made); err == nil || errors.Is(err, ErrOutcomeUnknown) {
		in.testNumbers.Started(r)
	}
	return err
}

// Own is a message of the gateway itself. It belongs to no company, costs neither credits nor quota and emits no
// webhook.
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
	r, err := in.own(own)
	if err != nil {
		return ulid.ULID{}, err
	}
	return r.ref, in.committer.submit(ctx, r)
}

func (in *Intake) own(own Own) (*request, error) {
	if own.Carrier == "" {
		var ok bool
		if own.Carrier, ok = in.Route(own.Number); !ok {
			return nil, in.refused(RefuseNoCarrier)
		}
	}
	encoding, segments := sms.Count(own.Text)
	m := &messages.Message{
		ULID: in.ulids.next(), UserID: own.User, Number: own.Number, Sender: cmp.Or(own.Sender, in.opts.TestSender),
		Body: own.Text, Secret: own.Secret,
		// also at a second carrier
		Encoding: encoding, Segments: segments, Carrier: own.Carrier, ExpireAt: postgres.Now().Add(own.Life),
	}
	return &request{user: own.User, ref: m.ULID, kind: kindCode, segments: segments, messages: []*messages.Message{m},
		response: func(int64) any { return nil }, came: time.Now()}, nil
}
