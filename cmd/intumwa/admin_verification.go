package main

import (
	"context"
	"fmt"
	"unicode/utf8"

	"intumwa/operations"
	"intumwa/sms"
	"intumwa/verifications"
)

type adminVerifyCmd struct {
	Text adminVerificationTextCmd `cmd:"" help:"Decide about companies' own texts of verifications."`
}

type adminVerificationTextCmd struct {
	List    adminTextListCmd    `cmd:"" help:"List a company's texts, or all that wait for a decision."`
	Ask     adminTextAskCmd     `cmd:"" help:"Ask for a text in a company's name; it replaces the other once approved."`
	Approve adminTextApproveCmd `cmd:"" help:"Approve a text: the company's verifications use it from now on."`
	Refuse  adminTextRefuseCmd  `cmd:"" help:"Refuse a text, or end its use, for a reason that the company reads."`
}

func (o *operator) verifications() *verifications.Store {
	return verifications.New(o.pool, []byte(o.config.Accounts.OTPKey))
}

// verificationOf is a verification, without its code.
func verificationOf(v *verifications.Verification) object {
	return object{{"verification_id", v.ULID.String()}, {"phone_number", v.Number}, {"sender", v.Sender},
		{"status", v.State.String()}, {"created_at", v.CreatedAt},
		{"expires_at", v.ExpiresAt}, {"finished_at", v.FinishedAt}, {"sends", v.Sends}, {"wrong_checks", v.Wrong},
		{"client_reference", orNull(v.Reference)},
		{"amount", orNull(v.Amount)}, {"payee", orNull(v.Payee)}, {"web_domain", orNull(v.WebDomain)},
		{"app_hash", orNull(v.AppHash)}}
}

func textOf(t verifications.OwnText) object {
	return object{{"text_id", t.ID}, {"company_id", int64(t.Company)}, {"locale", t.Locale}, {"text", t.Text},
		{"state", t.State()}, {"used_text", orNull(t.Used)}, {"asked_at", t.AskedAt}, {"reason", orNull(t.Refusal)}}
}

type adminTextListCmd struct {
	Company int64 `help:"The company; without it, all texts that wait." placeholder:"ID"`
}

func (c *adminTextListCmd) do(ctx context.Context, o *operator) (any, error) {
	list, err := o.verifications().OwnTexts(ctx, sms.CompanyID(c.Company))
	return done(views(list, textOf), err)
}

type adminTextAskCmd struct {
	Company int64  `required:"" help:"The company." placeholder:"ID"`
	Locale  string `required:"" enum:"rn,fr,en,sw" help:"The language: rn, fr, en or sw."`
	Text    string `required:"" help:"The text, with {{code}}; also {{minutes}}, {{amount}} and {{payee}}."`
}

func (c *adminTextAskCmd) do(ctx context.Context, o *operator) (any, error) {
	if _, err := o.companies().CompanyByID(ctx, c.Company); err != nil {
		return nil, err
	}
	t, err := o.by(nil).AskForText(ctx, sms.CompanyID(c.Company), c.Locale, c.Text)
	return done(textOf(t), err)
}

type adminTextApproveCmd struct {
	ID int64 `required:"" help:"The text."`
}

func (c *adminTextApproveCmd) do(ctx context.Context, o *operator) (any, error) {
	t, err := o.by(nil).DecideText(ctx, c.ID, operations.Decision{Approved: true})
	return done(textOf(t), err)
}

type adminTextRefuseCmd struct {
	ID     int64  `required:"" help:"The text."`
	Reason string `required:"" aliases:"note" help:"Why; up to 500 characters, for the company to read."`
}

func (c *adminTextRefuseCmd) do(ctx context.Context, o *operator) (any, error) {
	if n := utf8.RuneCountInString(c.Reason); n == 0 || n > verifications.MostReason {
		return nil, fmt.Errorf("--reason must have 1 to %d characters", verifications.MostReason)
	}
	t, err := o.by(nil).DecideText(ctx, c.ID, operations.Decision{Reason: c.Reason})
	return done(textOf(t), err)
}
