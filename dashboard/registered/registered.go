// Package registered says on pages where a sender ID is registered.
package registered

import (
	"slices"

	"intumwa/accounts"
	"intumwa/accounts/senders"
	"intumwa/sms"
)

// Texts maps the states of a sender at a carrier to the keys of their texts and the kinds of their badges; ""
// is nothing recorded.
var Texts = map[string]struct{ Key, Kind string }{
	"": {"registration.none", "wait"}, senders.RegistrationRequested: {"registration.requested", "wait"},
	senders.RegistrationSent:      {"registration.sent", "wait"},
	senders.RegistrationApproved:  {"registration.approved", "good"},
	senders.RegistrationRefused:   {"registration.refused", "bad"},
	senders.RegistrationNotNeeded: {"registration.unneeded", "good"},
}

// AtCarrier is a sender at a carrier.
type AtCarrier struct {
	senders.Registration // without an id: nothing is recorded

	Key, Kind string // of the state's badge
	Works     bool
	Gone      bool // the carrier is not in the configuration
}

// AtCarriers returns a sender at all carriers of the configuration, and at others about which something is recorded.
func AtCarriers(routes *sms.Routes, recorded map[string]senders.Registration) (list []AtCarrier) {
	sender := accounts.Sender{Works: map[string]bool{}}
	for carrier, r := range recorded {
		sender.Works[carrier] = r.Works
	}
	add := func(carrier string, gone bool) {
		row := AtCarrier{Registration: recorded[carrier], Works: sender.WorksAt(carrier, routes.Registration(carrier)),
			Gone: gone}
		row.Carrier = carrier
		text := Texts[row.State]
		if row.Key, row.Kind = text.Key, text.Kind; row.ID == 0 && row.Works {
			row.Key, row.Kind = "registration.default", "good"
		}
		list = append(list, row)
	}
	known := routes.Carriers()
	for _, carrier := range known {
		add(carrier, false)
	}
	var others []string
	for carrier := range recorded {
		if !slices.Contains(known, carrier) {
			others = append(others, carrier)
		}
	}
	slices.Sort(others)
	for _, carrier := range others {
		add(carrier, true)
	}
	return list
}
