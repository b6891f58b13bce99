package handsets

// SetMaxOptOuts replaces MaxOptOuts by a smaller limit.
func (s *Store) SetMaxOptOuts(most int) { s.rooms.most = most }

// Conditions of look-ups by number.
const (
	OfNumber        = ofNumber
	OptOutsOfNumber = optOutsOfNumber
)
