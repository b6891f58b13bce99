package handsets

// SetMaxOptOuts makes the lists shorter than MaxOptOuts.
func (s *Store) SetMaxOptOuts(most int) { s.rooms.most = most }

// How what is kept of a number is found.
const (
	OfNumber        = ofNumber
	OptOutsOfNumber = optOutsOfNumber
)
