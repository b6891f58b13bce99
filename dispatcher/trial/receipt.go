package trial

import (
	"context"
	"fmt"
	"strings"
	"time"

	"intumwa/dispatcher/profile"
	"intumwa/messages/receipts"
	"intumwa/smpp"
)

// Receipt is the form of a receipt that came for a trial's message.
type Receipt struct {
	After    float64 `json:"after"`     // seconds from the bind's answer to submit_sm
	Command  string  `json:"command"`   // deliver_sm or data_sm
	ESMClass string  `json:"esm_class"` // hexadecimal
	Form     string  `json:"form"`      // text, tlv, or text and tlv
	ID       string  `json:"id"`
	State    string  `json:"state"`
	Error    string  `json:"error,omitempty"`
	Echoes   bool    `json:"echoes_reference"` // user_message_reference came back
	Final    bool    `json:"final"`
	Means    string  `json:"means"` // sent, failed or pending
	noClass  bool    // only its text says that it is a receipt
}

// deliver takes the receipts of our number. Others are left to the carrier to deliver again, to the gateway.
func (t *trial) deliver(d *smpp.Delivery) {
	r := t.receiptOf(d)
	t.mu.Lock()
	defer t.mu.Unlock()
	if r == nil {
		t.others++
		d.Respond(smpp.StatusMsgQueueFull)
		return
	}
	t.receipts = append(t.receipts, r)
	d.Respond(smpp.StatusOK)
	select {
	case t.arrived <- struct{}{}:
	default:
	}
}

// receiptOf returns a delivery as a receipt of the trial's number, or nil.
func (t *trial) receiptOf(d *smpp.Delivery) *Receipt {
	national := strings.TrimPrefix(t.To.Digits(), "257")
	if d.Receipt == nil || national == "" || !strings.HasSuffix(d.Source, national) &&
		!strings.HasSuffix(d.Dest, national) {
		return nil
	}
	status, final := t.Profile.Meaning(d.Receipt.State)
	r := &Receipt{Command: "deliver_sm", ESMClass: fmt.Sprintf("%#02x", d.ESMClass), Form: "text", ID: d.Receipt.ID,
		State: d.Receipt.State,
		Error: d.Receipt.Error, Echoes: d.Receipt.UserMessageReference != nil, Final: final && !d.Receipt.Intermediate,
		Means: status.String(), noClass: d.Receipt.Unmarked}
	if d.DataSM {
		r.Command = "data_sm"
	}
	if _, tlv := d.TLV(smpp.TagReceiptedMessageID); tlv {
		r.Form = "tlv"
		if len(d.ShortMessage) > 0 {
			r.Form = "text and tlv"
		}
	}
	return r
}

// awaitReceipt waits for a final receipt and compares its id with that of the answer.
func (t *trial) awaitReceipt(ctx context.Context, p *profile.Profile) error {
	began := time.Now()
	for {
		select {
		case <-t.arrived:
		case <-ctx.Done():
			if t.result.Receipt != nil {
				return fmt.Errorf("no final receipt within %s, only %s", t.Wait, t.result.Receipt.State)
			}
			return fmt.Errorf("no receipt within %s: with none at all, set confirm: submit", t.Wait)
		}
		t.mu.Lock()
		last := *t.receipts[len(t.receipts)-1]
		t.mu.Unlock()
		last.After = time.Since(began).Seconds()
		t.result.Receipt = &last
		if last.Final {
			t.learn(p, &last)
			return nil
		}
	}
}

// learn compares a receipt with the configuration.
func (t *trial) learn(p *profile.Profile, r *Receipt) {
	if format, ok := receipts.Relate(t.result.MessageID, r.ID); ok && format != p.IDFormat {
		t.result.Learnt = append(t.result.Learnt, "message_id_format: "+format.String())
	}
	if r.noClass && !p.UnmarkedReceipts {
		t.result.Learnt = append(t.result.Learnt, "receipts_without_esm_class: true")
	}
}
