package main

import (
	"context"
	"strconv"

	"intumwa/dispatcher/profile"
	"intumwa/messages/receipts"
)

type adminCarrierWordsCmd struct {
	Carrier string `help:"Only this carrier's." placeholder:"NAME"`
}

// do lists the states of receipts that have no meaning here.
func (c *adminCarrierWordsCmd) do(ctx context.Context, o *operator) (any, error) {
	words, err := receipts.Words(ctx, o.pool)
	if err != nil {
		return nil, err
	}
	profiles := map[string]profile.Profile{}
	for i := range o.config.Carriers {
		profiles[o.config.Carriers[i].Name] = profileOf(&o.config.Carriers[i])
	}
	list := []object{}
	for _, w := range words {
		known := profiles[w.Carrier] // none: that carrier is not configured here
		if c.Carrier != "" && w.Carrier != c.Carrier || known.Knows(w.State) || w.State == "" {
			continue
		}
		list = append(list, object{{"carrier", w.Carrier}, {"state", w.State}, {"receipts", w.Count}, {"latest", w.Latest},
			{"set", receiptStateLine(w.State)}})
	}
	return list, nil
}

// receiptStateLine is the line of a carrier's configuration that gives a state a meaning.
func receiptStateLine(state string) string {
	return "receipt_states: {" + strconv.Quote(state) + ": sent} # or failed, none"
}
