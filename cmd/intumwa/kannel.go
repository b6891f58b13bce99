package main

import (
	"context"
	"errors"
	"net/http"

	"intumwa/api/kannel"
	"intumwa/messages"
	"intumwa/messages/lookup"
	"intumwa/sms"
	"intumwa/webhooks"
)

// serveKannel starts the listener of Kannel's interface before the API's handler.
func (g *gateway) serveKannel(ctx context.Context, life *life, api http.Handler, hooks *webhooks.Webhooks) error {
	handler := kannel.New(kannel.Options{API: api, CheckCallback: hooks.CheckCallback, Log: g.log, Metrics: g.registry})
	limits := newBounds("kannel", g.config.API.TrustedProxies, g.log, g.registry)
	return life.listen(ctx, "kannel", g.config.Kannel.Listen, limits, newServer(handler))
}

// carrierFacts looks up what carriers said about a message, for callbacks: of its first segment.
func carrierFacts(store *lookup.Store) func(ctx context.Context, company, id int64) (webhooks.Facts, error) {
	return func(ctx context.Context, company, id int64) (webhooks.Facts, error) {
		record, err := store.ByID(ctx, sms.CompanyID(company), id)
		if errors.Is(err, messages.ErrNotFound) { // it is purged
			return webhooks.Facts{}, nil
		}
		if err != nil {
			return webhooks.Facts{}, err
		}
		facts := webhooks.Facts{Carrier: record.Carrier, Reason: record.FailureReason}
		history, err := store.HistoryOf(ctx, id)
		if err == nil && len(history.Segments) > 0 {
			segment := &history.Segments[0]
			if facts.ID = segment.ID(); segment.Receipt != "" {
				facts.Receipt = "id:" + facts.ID + " stat:" + segment.Receipt + " err:" + segment.Error
			}
		}
		return facts, err
	}
}
