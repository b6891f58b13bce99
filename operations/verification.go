package operations

import (
	"context"
	"errors"

	"intumwa/sms"
	"intumwa/verifications"
)

// recordedText is a company's text as the audit log has it: without the text.
func recordedText(t *verifications.OwnText) any {
	if t.ID == 0 {
		return nil
	}
	return fields{"locale": t.Locale, "state": t.State()}
}

// AskForText asks for a company's own text of verifications. The errors are those of [verifications.AskForText].
func (a Actor) AskForText(ctx context.Context, company sms.CompanyID, locale, text string) (is verifications.OwnText,
	err error) {
	err = a.do(ctx, reads, func(in within) (act, error) {
		was, err := verifications.OwnTextOf(ctx, in.Tx, company, locale)
		if err != nil && !errors.Is(err, verifications.ErrNotFound) {
			return act{}, err
		}
		if is, err = verifications.AskForText(ctx, in.Tx, company, locale, text); err != nil {
			return act{}, err
		}
		done := on("verification_text.ask", "text", is.ID, int64(company), recordedText(&was), recordedText(&is))
		done.hidden = was.Text != is.Text
		return done, nil
	})
	return is, err
}

// DecideText approves a company's own text of verifications, or refuses it with a reason. [ErrChanged] for another
// version ([verifications.OwnText.Version]).
func (a Actor) DecideText(ctx context.Context, id int64, to Decision) (is verifications.OwnText, err error) {
	err = a.do(ctx, reads, func(in within) (act, error) {
		was, err := verifications.OwnTextByID(ctx, in.Tx, id)
		if err != nil {
			return act{}, err
		}
		if to.Version != nil && *to.Version != was.Version() {
			return act{}, ErrChanged
		}
		if is, err = verifications.DecideText(ctx, in.Tx, id, to.Approved, to.Reason); err != nil {
			return act{}, err
		}
		done := on("verification_text.approve", "text", id, int64(is.Company), recordedText(&was), recordedText(&is))
		if !to.Approved {
			done.name, done.reason = "verification_text.refuse", to.Reason
			done.hidden = was.Refusal != is.Refusal || was.Used != is.Used
		}
		return done, nil
	})
	return is, err
}
