package messages_test

import (
	"slices"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/sms"
)

func named(reference string) func(*messages.Message) {
	return func(m *messages.Message) { m.Reference = reference }
}

// TestLabels: channel and cost_center are stored with the messages that have them and with no others. A cost centre is
// found exactly, also with other filters, for its company only.
func TestLabels(t *testing.T) {
	d := newHotStore(t)
	d.pending(300)
	if n := d.count(`SELECT count(*) FROM messages WHERE channel IS NOT NULL OR cost_center IS NOT NULL`); n != 0 {
		t.Errorf("%d messages have a label", n)
	}
	labelled := func(center string, channel messages.Channel) func(*messages.Message) {
		return func(m *messages.Message) { m.CostCenter, m.Channel = center, channel }
	}
	ids := d.insert(d.compose(labelled("IT", messages.API)), d.compose(labelled("IT", messages.Page), named("42")),
		d.compose(labelled("it", messages.SMPP)),
		d.compose(labelled("", messages.Kannel)), d.compose(),
		d.compose(labelled("IT", messages.API), func(m *messages.Message) { m.CompanyID = 2 }))
	sent := sms.Sent
	for _, c := range []struct {
		company sms.CompanyID
		filter  lookup.Filter
		want    []int64
	}{
		{1, lookup.Filter{CostCenter: "IT"}, []int64{ids[1], ids[0]}},
		{1, lookup.Filter{CostCenter: "it"}, ids[2:3]},
		{1, lookup.Filter{CostCenter: "I"}, nil},
		{2, lookup.Filter{CostCenter: "IT"}, ids[5:]},
		{1, lookup.Filter{CostCenter: "IT", Reference: "42"}, ids[1:2]},
		{1, lookup.Filter{CostCenter: "it", Reference: "42"}, nil},
		{1, lookup.Filter{CostCenter: "IT", Status: &sent}, nil},
		{1, lookup.Filter{CostCenter: "IT", From: time.Now().Add(-time.Hour)}, []int64{ids[1], ids[0]}},
	} {
		var got []int64
		for before := int64(0); ; {
			page, next, err := d.List(t.Context(), c.company, c.filter, before, 1)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page {
				if got = append(got, r.ID); r.CostCenter != c.filter.CostCenter {
					t.Errorf("%q is found by %q", r.CostCenter, c.filter.CostCenter)
				}
			}
			if before = next; next == 0 {
				break
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d %+v: %v, want %v", c.company, c.filter, got, c.want)
		}
	}
	var channels []string
	for _, id := range ids[:5] {
		r, err := d.OperatorsByID(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		channels = append(channels, r.Channel.String())
	}
	if !slices.Equal(channels, []string{"api", "page", "smpp", "kannel", "api"}) {
		t.Errorf("channels: %v", channels)
	}
}

// TestReference: a client_reference is stored and found exactly, for its company only; messages without one are not in
// the index.
func TestReference(t *testing.T) {
	d := newHotStore(t)
	d.pending(300)
	// Its size would also tell of other tests' rows: VACUUM and REINDEX keep dead rows that some snapshot still sees.
	if in := column[string](d, `SELECT pg_get_expr(indpred, indrelid) FROM pg_index
		WHERE indexrelid = 'messages_client_reference'::regclass`); !slices.Equal(
		in, []string{"(client_reference IS NOT NULL)"}) {
		t.Errorf("the index has other messages than those with a reference: %q", in)
	}
	if n := d.count(`SELECT count(*) FROM messages WHERE client_reference IS NOT NULL OR send_at IS NOT NULL
		OR expire_at IS NOT NULL`) +
		d.count(`SELECT count(*) FROM deadlines`) + d.count(`SELECT count(*) FROM scheduled`); n != 0 {
		t.Errorf("%d other rows", n)
	}
	b := batchOf(1, 2)
	ids := d.insert(d.compose(named("facture 42")), d.compose(named("facture 42"), inBatch(b)),
		d.compose(named("facture 4"), inBatch(b)), d.compose(),
		d.compose(named("facture 42"), func(m *messages.Message) { m.CompanyID = 2 }), d.compose(named("Facture 42")))
	failed := sms.Failed
	stranger := ulid.Make()
	for _, c := range []struct {
		company sms.CompanyID
		filter  lookup.Filter
		want    []int64
	}{
		{1, lookup.Filter{Reference: "facture 42"}, []int64{ids[1], ids[0]}},
		{2, lookup.Filter{Reference: "facture 42"}, ids[4:5]},
		{3, lookup.Filter{Reference: "facture 42"}, nil},
		{1, lookup.Filter{Reference: "Facture 42"}, ids[5:6]},
		{1, lookup.Filter{Reference: "facture"}, nil},
		{1, lookup.Filter{Reference: "facture 42", Batch: &b.ULID}, ids[1:2]},
		{1, lookup.Filter{Reference: "facture 42", Batch: &stranger}, nil},
		{1, lookup.Filter{Reference: "facture 42", Status: &failed}, nil},
		{1, lookup.Filter{Reference: "facture 4", Number: "+25761000303"}, ids[2:3]},
	} {
		for _, limit := range []int{1, 10} {
			var got []int64
			for before := int64(0); ; {
				page, next, err := d.List(t.Context(), c.company, c.filter, before, limit)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range page {
					if got = append(got, r.ID); r.Reference != c.filter.Reference {
						t.Errorf("%q is found by %q", r.Reference, c.filter.Reference)
					}
				}
				if before = next; next == 0 {
					break
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%d %+v: %v, want %v", c.company, c.filter, got, c.want)
			}
		}
	}
}
