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

// or0 returns a limit of accounts.Limits; 0 is none.
func or0(limit *int64) int64 {
	if limit == nil {
		return 0
	}
	return *limit
}

// limit checks a request against its company's limits (accounts.Limits; rule choices 4.7): those on repeats at once,
// that on credits when it is paid. Undo the count unless the request is admitted or may be. A request with
// an idempotency key counts once, at whichever process it is repeated, and its key decides its outcome (reserve).
func (c *core) limit(ctx context.Context, company *accounts.Company, r *request) (counted throttle.Counted, err error) {
	if !r.kind.live() {
		return counted, nil
	}
	own := &company.Limits
	r.cap = or0(own.CreditsADay)
	repeats := throttle.RepeatLimits{Interval: time.Duration(or0(own.RepeatSeconds)) * time.Second,
		Texts: int(or0(own.RepeatsADay)), Messages: int(or0(own.NumberADay))}
	if !repeats.Any() || c.opts.Repeats == nil {
		return counted, nil
	}
	sendings := make([]throttle.Sending, len(r.messages))
	for i, m := range r.messages {
		sendings[i] = throttle.Sending{Number: string(m.Number), Text: m.Body}
		if r.code { // all texts with codes are alike, and have limits of their own
			sendings[i].Text += "\x00" + m.ULID.String()
		}
		if o := m.Origin; o != nil && o.Part != nil { // two parts of a message may have one text
			sendings[i].Text += "\x00" + strconv.Itoa(int(o.Part.Number))
		}
	}
	counted, first, reached := c.opts.Repeats.Count(ctx, company.ID, repeats, r.name(), sendings)
	if reached != throttle.NoRepeat {
		return counted, refuseRepeat(repeats, reached, r.kind.alone(), first)
	}
	return counted, nil
}

// name identifies a request and its repetitions; "" without a key.
func (r *request) name() string {
	if r.key == nil {
		return ""
	}
	return strconv.FormatInt(r.user, 10) + " " + r.key.Name + " " + string(r.key.Request[:])
}

// refuseRepeat returns the refusal of a message, or of the first such one of a batch.
func refuseRepeat(own throttle.RepeatLimits, reached throttle.Repeat, single bool, index int) error {
	recipient := ""
	if !single {
		recipient = ordinal(index)
	}
	var refusal sms.Refusal
	switch reached {
	case throttle.TooSoon:
		refusal = RefuseTooSoon(recipient, spell(own.Interval))
	case throttle.TooManyTexts:
		refusal = RefuseRepeats(recipient, strconv.Itoa(own.Texts))
	default:
		refusal = RefuseNumber(recipient, strconv.Itoa(own.Messages))
	}
	if single {
		return refusal
	}
	return &AtRecipient{refusal, index, true}
}

// spell formats an interval in the largest unit that divides it.
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

// capped returns the refusal of a request that exceeds what is left of the day's credits.
func (r *request) capped(left int64) sms.Refusal {
	what := "batch"
	if r.kind.alone() {
		what = "message"
	}
	return RefuseDailyCap(what, strconv.Itoa(r.segments), strconv.FormatInt(left, 10), strconv.FormatInt(r.cap, 10))
}
