package operations

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"

	"intumwa/billing"
	"intumwa/sms"
)

// rateFields is a rate in the audit log and in the output of commands.
func rateFields(to billing.Rate, price *billing.Centimes) fields {
	return fields{"valid_from": to.From.Format(time.DateOnly), "bif": price}
}

// recordedRate returns the states of a rate before and after it is set, nil if there was none before.
func recordedRate(before *billing.Rate, to billing.Rate) (was, is any) {
	if before != nil {
		was = rateFields(to, before.Price)
	}
	return was, rateFields(to, to.Price)
}

// SetPrice sets what a credit costs a company, or with company 0 those without a price of their own, from a day on. The
// errors are those of [billing.SetPrice], and [accounts.ErrNotFound].
func (a Actor) SetPrice(ctx context.Context, company sms.CompanyID, to billing.Rate) error {
	return a.do(ctx, reads, func(in within) (act, error) {
		if company != 0 {
			if _, err := in.companies().CompanyByID(ctx, int64(company)); err != nil {
				return act{}, err
			}
		}
		before, err := billing.SetPrice(ctx, in.Tx, company, to)
		was, is := recordedRate(before, to)
		return on("price.set", "company", int64(company), int64(company), was, is), err
	})
}

// ErrCarrierName means that a name is no carrier's.
var ErrCarrierName = errors.New("a carrier's name has 1 to 64 printable characters")

// SetTariff sets what a carrier takes for a segment from a day on. The errors are those of [billing.SetTariff], and
// [ErrCarrierName].
func (a Actor) SetTariff(ctx context.Context, carrier string, to billing.Rate) error {
	if n := utf8.RuneCountInString(carrier); n < 1 || n > 64 || !utf8.ValidString(carrier) {
		return ErrCarrierName
	}
	for _, r := range carrier {
		if !unicode.IsPrint(r) {
			return ErrCarrierName
		}
	}
	return a.do(ctx, reads, func(in within) (act, error) {
		before, err := billing.SetTariff(ctx, in.Tx, carrier, to)
		was, is := recordedRate(before, to)
		return act{name: "tariff.set", subject: fmt.Sprintf("carrier %s", carrier), before: was, after: is}, err
	})
}
