package carriersim

import (
	"slices"
	"time"
)

// Bound tells of one bound session.
type Bound struct {
	Session  int       `json:"session"`
	SystemID string    `json:"system_id"`
	Mode     string    `json:"mode"` // bind_transceiver, bind_transmitter or bind_receiver
	Remote   string    `json:"remote"`
	Since    time.Time `json:"since"`
	Submits  int       `json:"submits"`
}

// Sessions lists the bound sessions by number.
func (c *Carrier) Sessions() []Bound {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []Bound
	for s := range c.sessions {
		if s.mode != 0 {
			list = append(list, Bound{
				Session: s.number, SystemID: s.systemID, Mode: commandName(s.mode), Remote: s.conn.RemoteAddr().String(),
				Since: c.wall(s.opened), Submits: s.submits,
			})
		}
	}
	slices.SortFunc(list, func(a, b Bound) int { return a.Session - b.Session })
	return list
}
