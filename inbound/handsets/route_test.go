package handsets_test

import (
	"errors"
	"testing"

	"intumwa/inbound/handsets"
)

// TestRoutes: a carrier's own route wins over one of any carrier, then a keyword over any text.
func TestRoutes(t *testing.T) {
	d := newTestStore(t)
	add := func(address, keyword, carrier string, company int64) handsets.Route {
		t.Helper()
		r, err := d.AddRoute(t.Context(), handsets.Route{Address: address, Keyword: keyword, Carrier: carrier,
			CompanyID: company})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	add("8080", "", "", 1)
	add("8080", "Payé", "", 2)
	add("8080", "", "econet", 3)
	last := add("8080", "pay", "econet", 4)
	add("+257 79000000", "", "", 5)
	add("79000000", "x", "", 5)
	if _, err := d.AddRoute(t.Context(), handsets.Route{Address: "+8080", Keyword: "PAYE!", CompanyID: 9}); !errors.Is(
		err, handsets.ErrTaken) {
		t.Errorf("the same route twice: %v", err)
	}
	for _, c := range []struct {
		to, carrier, word string
		want              int64
	}{
		{"8080", "lumitel", "HELLO", 1}, {"8080", "lumitel", "", 1}, {"+8080", "lumitel", "PAYE", 2},
		{"8080", "econet", "PAYE", 3}, {"8080", "econet", "PAY", 4}, {"9090", "lumitel", "", 0},
		{"25779000000", "lumitel", "X", 5},
	} {
		routes, err := d.RoutesFrom(t.Context(), c.to)
		if err != nil {
			t.Fatal(err)
		}
		var got int64
		if r := routes.Find(c.carrier, c.word); r != nil {
			got = r.CompanyID
		}
		if got != c.want {
			t.Errorf("%q to %s by %s goes to %d, want %d", c.word, c.to, c.carrier, got, c.want)
		}
	}
	list, err := d.ListRoutes(t.Context(), 0, 10)
	if err != nil || len(list) != 6 || list[3] != last {
		t.Errorf("%+v, %v", list, err)
	}
	if gone, err := d.RemoveRoute(t.Context(), last.ID); err != nil || gone != last {
		t.Errorf("%+v, %v", gone, err)
	}
	if _, err := d.RemoveRoute(t.Context(), last.ID); !errors.Is(err, handsets.ErrNotFound) {
		t.Error(err)
	}
}
