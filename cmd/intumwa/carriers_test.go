package main

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"intumwa/configs"
	"intumwa/dispatcher/profile"
	"intumwa/smpp"
)

// TestConfigurationWords: configs allows exactly the words that the packages implement.
func TestConfigurationWords(t *testing.T) {
	for _, c := range []struct {
		of   any
		key  string
		here map[string]bool
	}{
		{configs.Log{}, "level", known(logLevels)},
		{configs.Billing{}, "refund", known(refunds)},
		{configs.Carrier{}, "confirm", known(confirmations)},
		{configs.Carrier{}, "sender_registration", known(registrations)},
		{configs.Carrier{}, "receipt_states", known(statuses)},
		{configs.Carrier{}, "message_id_format", known(idFormats)},
		{configs.Carrier{}, "inbound_coding", known(inboundCodings)},
		{configs.Carrier{}, "concat", known(concats)},
		{configs.Carrier{}, "alphabet", known(alphabets)},
		{configs.Carrier{}, "validity_period", known(validities)},
		{configs.Carrier{}, "on_ambiguous", known(policies)},
		{configs.Carrier{}, "error_classes", known(classes)},
		{configs.Carrier{}, "dest_form", known(destForms)},
		{configs.Link{}, "bind", known(bindModes)},
	} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(c.of)) {
			if f.Tag.Get("yaml") == c.key && !slices.Equal(slices.Sorted(maps.Keys(c.here)),
				slices.Sorted(slices.Values(strings.Fields(f.Tag.Get("oneof"))))) {
				t.Errorf("%s: configs allows %s, here are %v", c.key, f.Tag.Get("oneof"), c.here)
			}
		}
	}
}

func known[T any](words map[string]T) map[string]bool {
	out := map[string]bool{}
	for word := range words {
		out[word] = true
	}
	return out
}

// TestCarrierOf: how a carrier wants its SMPP, from the configuration to the values that encode and bind.
func TestCarrierOf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "intumwa.yaml")
	if err := os.WriteFile(path, []byte(`
carriers:
  - name: leo
    profile: old_3_3
    source_ton_npi: {short: [0, 1]}
    registered_delivery: 0
    message_class: 1
    links:
      - name: leo-1
        addresses: ["a:1", "b:2"]
        system_id: acme
        password: twelve-bytes
        address_range: "^8080$"
        address_range_ton_npi: [1, 1]
        receiver: {address: "c:3", password: other}
        local_address: 192.0.2.7
`), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := configs.Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := carrierOf(&c.Carriers[0])
	one, none := uint8(1), uint8(0)
	if want := (profile.Profile{Source: profile.Sources{Alphanumeric: profile.TONNPI{TON: 5},
		Short: profile.TONNPI{NPI: 1}, International: profile.TONNPI{TON: 1, NPI: 1}},
		Dest: profile.TONNPI{TON: 1, NPI: 1}, NoReference: true, Validity: profile.ValidityAbsolute, UCS2Coding: 8,
		Latin1Coding: 3, MessageClass: &one, RegisteredDelivery: &none,
		States: got.States, Classes: got.Classes}); !reflect.DeepEqual(got.Profile, want) {
		t.Errorf("%+v, want %+v", got.Profile, want)
	}
	link := got.Links[0].Options
	if want := (smpp.Account{Addresses: []string{"a:1", "b:2"}, SystemID: "acme",
		Password: "twelve-bytes"}); !reflect.DeepEqual(link.Account, want) {
		t.Errorf("%+v, want %+v", link.Account, want)
	}
	if want := (smpp.Account{Addresses: []string{"c:3"}, Password: "other"}); !reflect.DeepEqual(link.Receiver, want) {
		t.Errorf("%+v, want %+v", link.Receiver, want)
	}
	if link.Mode != smpp.TransmitterReceiver || link.Version != smpp.Version33 || link.AddressRange != "^8080$" ||
		link.AddressTON != 1 || link.AddressNPI != 1 || link.LocalAddress != "192.0.2.7" {
		t.Errorf("%+v", link)
	}
}
