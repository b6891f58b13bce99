package messages_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intumwa/messages"
)

// TestInbound: messages from handsets are kept as they came, shown youngest
// first, and forgotten after their time.
func TestInbound(t *testing.T) {
	d := newTestStore(t)
	text := "STOP\x00"
	d.tx(func(ctx context.Context, tx pgx.Tx) error {
		return d.KeepInbound(ctx, tx, []messages.Inbound{
			{At: time.Now().Add(-2 * time.Hour), Carrier: carrier, Link: "l1", Source: "25761000001", Destination: "8080", Octets: []byte("old")},
			{At: time.Now(), Carrier: carrier, Link: "l1", Source: "25761000002", Destination: "8080", Body: &text, Octets: []byte(text)},
		})
	})
	kept, err := d.Inbounds(t.Context(), 0, 10)
	if err != nil || len(kept) != 2 || kept[0].Source != "25761000002" || *kept[0].Body != "STOP" || string(kept[0].Octets) != text || kept[1].Body != nil {
		t.Fatalf("%+v, %v", kept, err)
	}
	if n, err := d.ForgetInbound(t.Context(), time.Hour); err != nil || n != 1 {
		t.Errorf("%d forgotten, %v", n, err)
	}
	if kept, err = d.Inbounds(t.Context(), 0, 10); err != nil || len(kept) != 1 || kept[0].Source != "25761000002" {
		t.Errorf("left: %+v, %v", kept, err)
	}
}
