package dashboard

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/dashboard/words"
	"intumwa/internal/audit"
	"intumwa/internal/postgres"
	"intumwa/webhooks"
)

const (
	deliveriesOnPage = 25
	attemptsOnPage   = 20
	localTime        = "2006-01-02T15:04" // format of an input of type datetime-local
)

type deliveriesPage struct {
	Endpoint   *webhooks.Endpoint // nil: none
	State      string
	Event      string
	Since      string
	Filtered   bool
	States     []option
	Events     []option
	Deliveries []deliveryLine
	Next       string // address of the next page; empty: none
	Failed     bool   // a delivery was given up, so a recovery is possible
	From       string
}

// deliveryLine is a delivery as shown in the list.
type deliveryLine struct {
	webhooks.Delivery

	Last *attempt
}

// Tries returns the number of calls.
func (l deliveryLine) Tries() int64 { return int64(len(l.Attempts)) }

// deliveries is GET /deliveries.
func (d *Dashboard) deliveries(v *visit, t tenant) {
	if data, ok := v.deliveriesPage(t); ok {
		v.render(http.StatusOK, "deliveries", data)
	}
}

// deliveriesPage reads the page's data. On an error it writes the response and returns false.
func (v *visit) deliveriesPage(t tenant) (data deliveriesPage, ok bool) {
	data.State, data.Event, data.Since = v.c.Query("state"), v.c.Query("event"), v.c.Query("since")
	data.States = v.options("", "deliveries.any", webhooks.StatePending, "delivery.pending", webhooks.StateDelivered, "delivery.delivered", webhooks.StateFailed, "delivery.failed")
	data.Events = append([]option{{"", v.lang.T("deliveries.any")}}, eventOptions()...)
	if !among(data.States, data.State) {
		data.State = ""
	}
	if !among(data.Events, data.Event) {
		data.Event = ""
	}
	since, err := localInstant(data.Since)
	if err != nil {
		data.Since = ""
	}
	data.Filtered = data.State != "" || data.Event != "" || data.Since != ""
	ctx, hooks := v.ctx(), v.d.rooms.Webhooks
	list, next, err := hooks.Deliveries(ctx, t.company(), webhooks.Filter{State: data.State, Event: data.Event, Since: since}, v.after("before"), deliveriesOnPage)
	if err == nil {
		var given []webhooks.Delivery
		given, _, err = hooks.Deliveries(ctx, t.company(), webhooks.Filter{State: webhooks.StateFailed}, 0, 1)
		data.Failed = len(given) > 0
	}
	if err == nil {
		var p webhookPart
		p, err = v.webhookPart(t)
		data.Endpoint = p.Endpoint
	}
	if err != nil {
		v.handleError("listing webhook deliveries", err)
		return data, false
	}
	for i := range list {
		line := deliveryLine{Delivery: list[i]}
		if n := len(list[i].Attempts); n > 0 {
			last := v.newAttempt(list[i].Attempts[n-1])
			line.Last = &last
		}
		data.Deliveries = append(data.Deliveries, line)
	}
	if next > 0 {
		data.Next = address("/deliveries", "state", data.State, "event", data.Event, "since", data.Since, "before", strconv.FormatInt(next, 10))
	}
	data.From = postgres.Now().Add(-24 * time.Hour).In(words.Bujumbura).Format(localTime)
	return data, true
}

func among(list []option, value string) bool {
	for _, o := range list {
		if o.Value == value {
			return true
		}
	}
	return false
}

// localInstant parses the value of an input of type datetime-local, in Burundi's time; the zero time when it is empty.
func localInstant(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.ParseInLocation(localTime, text, words.Bujumbura)
	if err != nil {
		at, err = time.ParseInLocation(time.DateOnly, text, words.Bujumbura)
	}
	if err == nil && (at.Year() < 2000 || at.Year() > 2200) {
		err = fmt.Errorf("the year %d", at.Year())
	}
	return at, err
}

type deliveryPage struct {
	webhooks.Delivery

	Calls    []attempt // the latest first
	Older    int64     // number of earlier calls that are not shown
	Endpoint *webhooks.Endpoint
}

// delivery is GET /deliveries/of/:id.
func (d *Dashboard) delivery(v *visit, t tenant) {
	found, err := d.rooms.Webhooks.Delivery(v.ctx(), t.company(), v.id())
	var part webhookPart
	if err == nil {
		part, err = v.webhookPart(t)
	}
	if err != nil {
		v.handleError("reading a webhook delivery", err)
		return
	}
	data := deliveryPage{Delivery: found, Endpoint: part.Endpoint}
	older := max(0, len(found.Attempts)-attemptsOnPage)
	for _, a := range slices.Backward(found.Attempts[older:]) {
		data.Calls = append(data.Calls, v.newAttempt(a))
	}
	data.Older = int64(older)
	v.render(http.StatusOK, "delivery", data)
}

// resend is POST /deliveries/of/:id/resend.
func (d *Dashboard) resend(v *visit, t tenant) {
	id := v.id()
	err := pgx.BeginFunc(v.ctx(), d.rooms.Pool, func(tx pgx.Tx) error {
		hooks := d.rooms.Webhooks.In(tx)
		before, err := hooks.Delivery(v.ctx(), t.company(), id)
		if err != nil {
			return err
		}
		after, err := hooks.Resend(v.ctx(), t.company(), id)
		if err != nil {
			return err
		}
		return audit.Record(v.ctx(), tx, audit.Entry{Actor: audit.User(t.User.ID), Act: "webhook.resend", Subject: "delivery " + after.WebhookID, Company: t.company(),
			Before: map[string]any{"state": before.State}, After: map[string]any{"state": after.State}})
	})
	if err != nil {
		v.handleError("re-sending a webhook delivery", err)
		return
	}
	d.rooms.Webhooks.Kick()
	v.redirect("/deliveries/of/"+strconv.FormatInt(id, 10), "flash.resent")
}

// recoverDeliveries is POST /deliveries/recovery: it sends again the deliveries given up since a time.
func (d *Dashboard) recoverDeliveries(v *visit, t tenant) {
	f := v.form()
	since, err := localInstant(f.required("from"))
	if err != nil {
		f.refuse("from", "recovery.when")
	}
	if !f.ok() {
		if data, ok := v.deliveriesPage(t); ok {
			v.renderForm("deliveries", data, f)
		}
		return
	}
	err = pgx.BeginFunc(v.ctx(), d.rooms.Pool, func(tx pgx.Tx) error {
		resent, err := d.rooms.Webhooks.In(tx).Recover(v.ctx(), t.company(), since)
		if err != nil {
			return err
		}
		return audit.Record(v.ctx(), tx, audit.Entry{Actor: audit.User(t.User.ID), Act: "webhook.recover", Subject: "webhook of company " + t.company().String(),
			Company: t.company(), After: map[string]any{"since": since, "found": resent}})
	})
	if err != nil {
		v.handleError("recovering webhooks", err)
		return
	}
	d.rooms.Webhooks.Kick()
	v.redirect("/deliveries", "flash.recovery")
}
