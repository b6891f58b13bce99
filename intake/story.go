package intake

import (
	"context"
	"log/slog"
)

// requestKey is of a request's id in its context.
type requestKey struct{}

// WithRequest lets what is logged of the messages of a request bear its id.
func WithRequest(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestKey{}, id)
}

func requestOf(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}

// tell logs at debug level the messages of an order that is committed: the
// first line of each one's story. At other levels it costs nothing.
func (d *desk) tell(o *order) {
	log := d.in.opts.Log
	if !log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	for _, m := range o.messages {
		fields := []any{"id", m.ULID, "kind", o.kind.String(), "company_id", m.CompanyID, "carrier", m.Carrier,
			"number", m.Number.Masked(), "segments", m.Segments}
		if o.request != "" {
			fields = append(fields, "request_id", o.request)
		}
		if m.Batch != nil {
			fields = append(fields, "batch_id", o.ref)
		}
		log.Debug("message accepted", fields...)
	}
}
