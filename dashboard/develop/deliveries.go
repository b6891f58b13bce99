package develop

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"intumwa/dashboard/web"
	"intumwa/internal/postgres"
	"intumwa/texts"
	"intumwa/webhooks"
)

const (
	deliveriesOnPage = 25
	attemptsOnPage   = 20
)

type deliveriesPage struct {
	web.Listing[webhooks.Delivery]

	Endpoint *webhooks.Endpoint // nil: none
	Settings *webhookSettings   // nil on pages that show only the log: later ones, and filtered ones
	States   []web.Option
	Events   []web.Option
	Failed   bool // a delivery was given up, so recovery is possible
	From     string
}

// Deliveries is GET /deliveries: the endpoint, its test, and the log of its calls.
func (ps *Pages) Deliveries(v *web.Visit, t web.Tenant) (err error) {
	f, hooks := v.Parameters("state", "event", "since"), ps.Deps.Webhooks
	p := deliveriesPage{
		States: v.Options("", "deliveries.any", webhooks.StatePending, "delivery.pending", webhooks.StateDelivered,
			"delivery.delivered", webhooks.StateFailed, "delivery.failed"),
		Events: append(v.Options("", "deliveries.any"), eventOptions()...),
		From:   postgres.Now().Add(-24 * time.Hour).In(texts.Bujumbura).Format(web.LocalTime),
	}
	filter := webhooks.Filter{Since: f.Instant("since", "recovery.when")}
	if web.Among(p.States, f.Value("state")) {
		filter.State = f.Value("state")
	}
	if web.Among(p.Events, f.Value("event")) {
		filter.Event = f.Value("event")
	}
	if p.Listing, err = web.List(v, "/deliveries", deliveriesOnPage,
		func(before int64, limit int) ([]webhooks.Delivery, int64, error) {
			return hooks.Deliveries(v.Ctx(), t.CompanyID(), filter, before, limit)
		}); err != nil {
		return err
	}
	given, _, err := hooks.Deliveries(v.Ctx(), t.CompanyID(), webhooks.Filter{State: webhooks.StateFailed}, 0, 1)
	if err != nil {
		return err
	}
	p.Failed = len(given) > 0
	if p.Endpoint, err = ps.Endpoint(v, t); err == nil && !p.Filtered && !p.Later {
		p.Settings, err = ps.webhookSettings(v, t, p.Endpoint)
	}
	return v.Page(err, "deliveries", p)
}

type deliveryPage struct {
	webhooks.Delivery

	Calls    []webhooks.Attempt // the latest first
	Older    int                // number of earlier calls not shown
	Endpoint *webhooks.Endpoint
}

// Delivery is GET /deliveries/of/:id.
func (ps *Pages) Delivery(v *web.Visit, t web.Tenant) (err error) {
	var data deliveryPage
	if data.Delivery, err = ps.Deps.Webhooks.Delivery(v.Ctx(), t.CompanyID(), v.ID()); err != nil {
		return err
	}
	if data.Endpoint, err = ps.Endpoint(v, t); err != nil {
		return err
	}
	data.Older = max(0, len(data.Attempts)-attemptsOnPage)
	data.Calls = data.Attempts[data.Older:]
	slices.Reverse(data.Calls)
	return v.Render("delivery", data)
}

// Resend is POST /deliveries/of/:id/resend.
func (ps *Pages) Resend(v *web.Visit, t web.Tenant) error {
	err := ps.By(v).Resend(v.Ctx(), t.CompanyID(), v.ID())
	return v.Done(err, "/deliveries/of/"+strconv.FormatInt(v.ID(), 10), "flash.resent")
}

// RecoverDeliveries is POST /deliveries/recovery: it resends the deliveries given up since a time. If there are more
// than it can in its time, the page says so, and its form continues.
func (ps *Pages) RecoverDeliveries(v *web.Visit, t web.Tenant) error {
	f := v.Form()
	f.Required("from")
	since := f.Instant("from", "recovery.when")
	if !f.OK() {
		return ps.Deliveries(v, t)
	}
	_, left, err := ps.By(v).Recover(v.Ctx(), t.CompanyID(), since)
	if err == nil && left > 0 {
		f.Deny(http.StatusOK, "recovery.left", left)
		return ps.Deliveries(v, t)
	}
	return v.Done(err, "/deliveries", "flash.recovery")
}
