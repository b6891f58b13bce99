package handsets

// SetMaxOptOuts makes the lists shorter than MaxOptOuts.
func (s *Store) SetMaxOptOuts(most int64) { s.lists.most = most }
