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

// Limits bound what a company's live messages may be; a zero field bounds nothing, and
// without any a request is not looked at. A company may have others of its own
// (accounts.Limits). They are no part of rule api 7.2, so none is in force unless
// somebody sets it.
type Limits struct {
	RepeatInterval time.Duration // between two sends of a text to a number, at most a day
	RepeatsADay    int           // of a text to a number
	NumberADay     int           // messages to a number
	CreditsADay    int64         // credits that a company's requests may take
	Singles        bool          // single sends count as well in the first three, not only batches
}

// limitsOf are the limits of a company.
func (in *Intake) limitsOf(company *accounts.Company) Limits {
	l, own := in.opts.Limits, &company.Limits
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
	limits := in.limitsOf(company)
	r.cap = limits.CreditsADay
	repeats := throttle.RepeatLimits{Interval: limits.RepeatInterval, Texts: limits.RepeatsADay, Messages: limits.NumberADay}
	if !repeats.Any() || in.opts.Repeats == nil || (single && !limits.Singles) {
		return release, nil
	}
	sendings := make([]throttle.Sending, len(r.messages))
	for i, m := range r.messages {
		sendings[i] = throttle.Sending{Number: string(m.Number), Text: m.Body}
	}
	counted, first, reached := in.opts.Repeats.Count(ctx, company.ID, repeats, r.name(), sendings)
	if reached != throttle.NoRepeat {
		return release, refuseRepeat(limits, reached, single, first)
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
func refuseRepeat(limits Limits, reached throttle.Repeat, single bool, index int) error {
	recipient := ""
	if !single {
		recipient = ordinal(index)
	}
	switch reached {
	case throttle.TooSoon:
		return RefuseTooSoon(recipient, spell(limits.RepeatInterval))
	case throttle.TooManyTexts:
		return RefuseRepeats(recipient, strconv.Itoa(limits.RepeatsADay))
	default:
		return RefuseNumber(recipient, strconv.Itoa(limits.NumberADay))
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
