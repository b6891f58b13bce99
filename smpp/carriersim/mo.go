package carriersim

import "errors"

// MO is a text from a handset.
type MO struct {
	From, To string // digits, and digits or a name
	Text     string
	SystemID string // whose; empty = the carrier's own, or the only one bound
	ESMClass uint8
}

// ErrNoSession is what SendMO answers when it cannot tell whom the text is for.
var ErrNoSession = errors.New("carriersim: no session is bound, or several system_ids are and none was named")

// SendMO has a handset send a text. It is delivered like a receipt, again and
// again until it is answered.
func (c *Carrier) SendMO(m MO) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	systemID := m.SystemID
	if systemID == "" {
		systemID = c.opts.SystemID
	}
	if systemID == "" {
		for name, a := range c.accounts {
			if len(a.receivers) == 0 {
				continue
			}
			if systemID != "" {
				return ErrNoSession
			}
			systemID = name
		}
	}
	if systemID == "" {
		return ErrNoSession
	}
	text, coding := encodeText(m.Text)
	if len(text) > 254 {
		return errors.New("carriersim: the text is over 254 octets")
	}
	now := c.clock()
	e := c.queue.fresh()
	e.command, e.systemID, e.mo = cmdDeliverSM, systemID, true
	e.pdu = appendDeliver(e.pdu[:0], delivery{
		srcTON: 1, srcNPI: 1, src: []byte(m.From), dst: []byte(m.To), esmClass: m.ESMClass, coding: coding, text: text,
	})
	c.queueDelivery(e, now, now)
	c.wake()
	return nil
}
