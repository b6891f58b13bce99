package dashboard

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"intumwa/internal/postgres"
	"intumwa/texts"
	"intumwa/webhooks"
)

const (
	deliveriesOnPage = 25
	attemptsOnPage   = 20
)

type deliveriesPage struct {
	listing[webhooks.Delivery]

	Endpoint *webhooks.Endpoint // nil: none
	Settings *webhookSettings   // nil on pages that show only the log: later ones, and filtered ones
	States   []option
	Events   []option
	Failed   bool // a delivery was given up, so recovery is possible
	From     string
}

// deliveries is GET /deliveries: the endpoint, its test, and the log of its calls.
func (d *Dashboard) deliveries(v *visit, t tenant) (err error) {
	f, hooks := v.parameters("state", "event", "since"), d.rooms.Webhooks
	p := deliveriesPage{
		States: v.options("", "deliveries.any", webhooks.StatePending, "delivery.pending", webhooks.StateDelivered, "delivery.delivered", webhooks.StateFailed, "delivery.failed"),
		Events: append(v.options("", "deliveries.any"), eventOptions()...),
		From:   postgres.Now().Add(-24 * time.Hour).In(texts.Bujumbura).Format(localTime),
	}
	filter := webhooks.Filter{Since: f.instant("since", "recovery.when")}
	if among(p.States, f.Value("state")) {
		filter.State = f.Value("state")
	}
	if among(p.Events, f.Value("event")) {
		filter.Event = f.Value("event")
	}
	if p.listing, err = list(v, "/deliveries", deliveriesOnPage, func(before int64, limit int) ([]webhooks.Delivery, int64, error) {
		return hooks.Deliveries(v.ctx(), t.company(), filter, before, limit)
	}); err != nil {
		return err
	}
	given, _, err := hooks.Deliveries(v.ctx(), t.company(), webhooks.Filter{State: webhooks.StateFailed}, 0, 1)
	if err != nil {
		return err
	}
	p.Failed = len(given) > 0
	if p.Endpoint, err = v.endpoint(t); err == nil && !p.Filtered && !p.Later {
		p.Settings, err = v.webhookSettings(t, p.Endpoint)
	}
	return v.page(err, "deliveries", p)
}

func among(list []option, value string) bool {
	for _, o := range list {
		if o.Value == value {
			return true
		}
	}
	return false
}

type deliveryPage struct {
	webhooks.Delivery

	Calls    []webhooks.Attempt // the latest first
	Older    int                // number of earlier calls not shown
	Endpoint *webhooks.Endpoint
}

// delivery is GET /deliveries/of/:id.
func (d *Dashboard) delivery(v *visit, t tenant) (err error) {
	var data deliveryPage
	if data.Delivery, err = d.rooms.Webhooks.Delivery(v.ctx(), t.company(), v.id()); err != nil {
		return err
	}
	if data.Endpoint, err = v.endpoint(t); err != nil {
		return err
	}
	data.Older = max(0, len(data.Attempts)-attemptsOnPage)
	data.Calls = data.Attempts[data.Older:]
	slices.Reverse(data.Calls)
	return v.render("delivery", data)
}

// resend is POST /deliveries/of/:id/resend.
func (d *Dashboard) resend(v *visit, t tenant) error {
	err := v.by().Resend(v.ctx(), t.company(), v.id())
	return v.done(err, "/deliveries/of/"+strconv.FormatInt(v.id(), 10), "flash.resent")
}

// recoverDeliveries is POST /deliveries/recovery: it resends the deliveries given up since a time. If there are more
// than it can in its time, the page says so, and its form continues.
func (d *Dashboard) recoverDeliveries(v *visit, t tenant) error {
	f := v.form()
	f.required("from")
	since := f.instant("from", "recovery.when")
	if !f.ok() {
		return d.deliveries(v, t)
	}
	_, left, err := v.by().Recover(v.ctx(), t.company(), since)
	if err == nil && left > 0 {
		f.deny(http.StatusOK, "recovery.left", left)
		return d.deliveries(v, t)
	}
	return v.done(err, "/deliveries", "flash.recovery")
}
