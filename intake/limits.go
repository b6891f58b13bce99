package intake

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"intumwa/accounts"
	"intumwa/internal/throttle"
	"intumwa/sms"
)

// limits bound what a company's live messages may be (accounts.Limits); a zero field
// bounds nothing, and without any a request is not looked at. They are no part of
// rule api 7.2, so none is in force unless somebody sets it for the company.
type limits struct {
	RepeatInterval time.Duration // between two sends of a text to a number, at most a day
	RepeatsADay    int           // of a text to a number
	NumberADay     int           // messages to a number
	CreditsADay    int64         // credits that a company's requests may take
}

// limitsOf are the limits of a company.
func limitsOf(company *accounts.Company) (l limits) {
	own := &company.Limits
	if own.RepeatSeconds != nil {
		l.RepeatInterval = time.Duration(*own.RepeatSeconds) * time.Second
	}
	if own.RepeatsADay != nil {
		l.RepeatsADay = int(*own.RepeatsADay)
	}
	if own.NumberADay != nil {
		l.NumberADay = int(*own.NumberADay)
	}
	if own.CreditsADay != nil {
		l.CreditsADay = *own.CreditsADay
	}
	return l
}

// count holds a request against its company's limits: those on repeats at once, that on
// credits when it is paid. Unless the request is admitted, or may be, release takes
// back what was counted. One that has an idempotency key counts once, whichever process
// it is repeated at and whether it is answered by then: what becomes of it is said by
// its key (reserve).
func (in *Intake) count(ctx context.Context, company *accounts.Company, r *request) (release func(), err error) {
	release = func() {}
	single := r.kind == kindSingle
	if !single && r.kind != kindBulk && r.kind != kindTemplate {
		return release, nil
	}
	own := limitsOf(company)
	r.cap = own.CreditsADay
	repeats := throttle.RepeatLimits{Interval: own.RepeatInterval, Texts: own.RepeatsADay, Messages: own.NumberADay}
	if !repeats.Any() || in.opts.Repeats == nil {
		return release, nil
	}
	sendings := make([]throttle.Sending, len(r.messages))
	for i, m := range r.messages {
		sendings[i] = throttle.Sending{Number: string(m.Number), Text: m.Body}
	}
	counted, first, reached := in.opts.Repeats.Count(ctx, company.ID, repeats, r.name(), sendings)
	if reached != throttle.NoRepeat {
		return release, refuseRepeat(own, reached, single, first)
	}
	return func() { counted.Undo(ctx) }, nil
}

// name is what the request has in common with its repetitions; "" without a key.
func (r *request) name() string {
	if r.key == nil {
		return ""
	}
	return strconv.FormatInt(r.user, 10) + " " + r.key.Name + " " + string(r.key.Request[:])
}

// refuseRepeat is the refusal of a message, in a batch of the first.
func refuseRepeat(own limits, reached throttle.Repeat, single bool, index int) error {
	recipient := ""
	if !single {
		recipient = ordinal(index)
	}
	switch reached {
	case throttle.TooSoon:
		return RefuseTooSoon(recipient, spell(own.RepeatInterval))
	case throttle.TooManyTexts:
		return RefuseRepeats(recipient, strconv.Itoa(own.RepeatsADay))
	default:
		return RefuseNumber(recipient, strconv.Itoa(own.NumberADay))
	}
}

// spell writes an interval in the largest unit that it is a whole number of.
func spell(d time.Duration) string {
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if d >= unit.of && d%unit.of == 0 {
			if n := d / unit.of; n > 1 {
				return fmt.Sprintf("%d %ss", n, unit.name)
			}
			return "1 " + unit.name
		}
	}
	return d.String()
}

// capped is the refusal of a request that the day's credits do not suffice for.
func (r *request) capped() sms.Refusal {
	what := "batch"
	if r.kind == kindSingle {
		what = "message"
	}
	return RefuseDailyCap(what, strconv.Itoa(r.segments), strconv.FormatInt(r.capLeft, 10), strconv.FormatInt(r.cap, 10))
}
