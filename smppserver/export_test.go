package smppserver

import "github.com/oklog/ulid/v2"

// Outcome is outcome, for a submit_sm whose COMMIT got no answer.
func (s *Server) Outcome(id ulid.ULID) error { return s.outcome(0, id) }
