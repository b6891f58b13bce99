package carriersim

import "strconv"

// handle processes one PDU. body is only valid during the call.
func (s *session) handle(h header, body []byte) {
	if s.c.halfOpen.Load() {
		return
	}
	switch h.command {
	case cmdSubmitSM:
		s.submit(h, body)
	case cmdDeliverSM | cmdResponse, cmdDataSM | cmdResponse:
		s.handleDeliverResp(h, body)
	case cmdBindReceiver, cmdBindTransmitter, cmdBindTransceiver:
		s.bind(h, body)
	case cmdEnquireLink, cmdUnbind:
		s.respondEmpty(h, body)
	case cmdEnquireLink | cmdResponse, cmdUnbind | cmdResponse:
		s.handleResponse(h, body)
	case cmdGenericNack:
		s.handleNack(h)
	default:
		s.c.mu.Lock()
		s.c.violate(s, h, InvalidCommand, "is not served here")
		s.c.mu.Unlock()
		if h.command&cmdResponse == 0 {
			s.nack(h.seq, InvalidCommand)
		}
	}
}

// checkHeader records errors of a request's header; the caller holds c.mu.
func (s *session) checkHeader(h header) {
	if h.seq == 0 || h.seq > 0x7FFFFFFF {
		s.c.violate(s, h, InvalidCommandLen, "sequence_number "+strconv.FormatUint(uint64(h.seq), 10)+
			" is out of 1 to 0x7FFFFFFF")
	}
	if h.status != OK {
		s.c.violate(s, h, InvalidCommandLen, "a request with a command_status")
	}
}

// bind responds to a bind request. After a refusal it closes the connection.
func (s *session) bind(h header, body []byte) {
	b, breaches := decodeBind(body)
	c := s.c
	c.mu.Lock()
	s.checkHeader(h)
	status := OK
	for _, wrong := range breaches {
		c.violate(s, h, wrong.status, wrong.text)
	}
	bound := 0
	var oldest *session
	for other := range c.sessions {
		if other.mode == 0 || c.opts.ClosesOlder && other.systemID != b.systemID {
			continue
		}
		bound++
		if oldest == nil || other.number < oldest.number {
			oldest = other
		}
	}
	switch {
	case c.faults.BindSilent:
		c.mu.Unlock()
		return
	case s.mode != 0:
		c.violate(s, h, AlreadyBound, "on a session that is bound")
		status = AlreadyBound
	case c.faults.BindStatus != OK:
		status = c.faults.BindStatus
	case len(breaches) > 0 && !c.opts.Lenient:
		status = breaches[0].status
	case c.faults.refusesBind(h.command, &b) != OK:
		status = c.faults.refusesBind(h.command, &b)
	case c.opts.SystemID != "" && b.systemID != c.opts.SystemID:
		status = InvalidSystemID
	case c.opts.Password != "" && b.password != c.opts.Password:
		status = InvalidPassword
	case c.opts.SystemType != "" && b.systemType != c.opts.SystemType:
		status = InvalidSystemType
	case bound >= c.opts.MaxSessions && c.opts.ClosesOlder:
		c.stats.Replaced++
		c.leave(oldest)
		defer oldest.drop(false)
	case bound >= c.opts.MaxSessions:
		status = AlreadyBound
	}
	again := s.mode != 0
	if status == OK {
		c.stats.Binds++
		s.mode, s.systemID, s.enquiredAt = h.command, b.systemID, c.clock()
		if s.mode != cmdBindTransmitter {
			c.join(s)
		}
		u := c.usageOf(s.systemID)
		u.mostBound = max(u.mostBound, c.boundAs(s.systemID))
	} else {
		c.stats.BindRefused++
	}
	// The response must go out before the first receipt.
	pdu := appendHeader(nil, h.command|cmdResponse, status, h.seq)
	if status != OK {
		command, seq := c.faults.bindRefusal(h)
		pdu = appendHeader(nil, command, status, seq)
	} else {
		name := c.opts.Name
		if len(name) > 15 {
			name = name[:15]
		}
		if pdu = appendCString(pdu, name); !c.faults.Old33 {
			pdu = appendTLV(pdu, tagSCVersion, []byte{0x34})
		}
	}
	if status == InvalidCommand { // it does not know the command
		pdu = appendHeader(nil, cmdGenericNack, status, h.seq)
	}
	s.send(finish(pdu, 0))
	c.mu.Unlock()
	c.opts.Log.Info("bind", "carrier", c.opts.Name, "session", s.number, "command", commandName(h.command), "status",
		status.String())
	s.pushed = true // receipts may be waiting for it
	if status != OK && !again {
		s.finishSoon()
	}
}

// bindRefusal returns the command_id and sequence_number of the response that refuses a bind.
func (f *Faults) bindRefusal(h header) (command, seq uint32) {
	command, seq = h.command|cmdResponse, h.seq
	switch {
	case f.BindNack:
		command = cmdGenericNack
	case f.BindOther && h.command == cmdBindTransmitter:
		command = cmdBindReceiver | cmdResponse
	case f.BindOther:
		command = cmdBindTransmitter | cmdResponse
	}
	if f.BindSequence0 {
		seq = 0
	}
	return command, seq
}

// respondEmpty responds to enquire_link and unbind.
func (s *session) respondEmpty(h header, body []byte) {
	c := s.c
	c.mu.Lock()
	s.checkHeader(h)
	if len(body) > 0 {
		c.violate(s, h, InvalidCommandLen, "has a body")
	}
	silent := h.command == cmdEnquireLink && c.faults.EnquireSilent
	if h.command == cmdUnbind {
		c.stats.Unbinds++
		if s.mode == 0 {
			c.violate(s, h, InvalidBindStatus, "on a session that is not bound")
		}
		c.leave(s)
	} else {
		c.stats.Enquiries++
	}
	c.mu.Unlock()
	if silent {
		return
	}
	var pdu [headerLen]byte
	s.send(finish(appendHeader(pdu[:0], h.command|cmdResponse, OK, h.seq), 0))
	if h.command == cmdUnbind {
		s.finishSoon()
	}
}

// handleResponse handles the response to our enquire_link or unbind.
func (s *session) handleResponse(h header, body []byte) {
	s.mu.Lock()
	command, known := s.pending[h.seq]
	if known = known && command == h.command&^cmdResponse; known {
		delete(s.pending, h.seq)
	}
	s.mu.Unlock()
	if !known || len(body) > 0 {
		s.c.mu.Lock()
		if !known {
			s.c.violate(s, h, InvalidCommand, "answers no request of ours")
		} else {
			s.c.violate(s, h, InvalidCommandLen, "has a body")
		}
		s.c.mu.Unlock()
	}
	if known && command == cmdUnbind {
		s.finishSoon()
	}
}

// handleNack handles a generic_nack, which may refuse a delivery.
func (s *session) handleNack(h header) {
	s.mu.Lock()
	e := s.unacked[h.seq]
	delete(s.unacked, h.seq)
	s.mu.Unlock()
	if e == nil {
		return
	}
	s.c.mu.Lock()
	s.c.stats.Discarded++
	s.c.pending--
	s.c.mu.Unlock()
	s.pushed = true
}

// handleDeliverResp handles a deliver_sm_resp or data_sm_resp. After a temporary refusal the
// delivery is repeated. The temporary statuses are those that large carriers publish, without
// ESME_RX_T_APPN.
func (s *session) handleDeliverResp(h header, body []byte) {
	if s.floodAnswered(h) {
		return
	}
	s.mu.Lock()
	e := s.unacked[h.seq]
	if e != nil && e.command|cmdResponse == h.command {
		delete(s.unacked, h.seq)
	} else {
		e = nil
	}
	_, late := s.overdue[h.seq]
	delete(s.overdue, h.seq)
	s.mu.Unlock()
	wrong := checkAck(h, body)
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if wrong != "" {
		c.violate(s, h, InvalidCommandLen, wrong)
	}
	if late {
		c.stats.LateAcks++
		return
	}
	if e == nil {
		c.violate(s, h, InvalidCommand, "answers nothing that was delivered")
		return
	}
	s.pushed = s.pushed || c.waiting(s)
	switch h.status {
	case OK:
		c.stats.Confirmed++
		c.pending--
	case SystemError, QueueFull, Throttled:
		c.requeue(e, c.clock()+int64(c.opts.RedeliverDelay))
		s.pushed = true
	default:
		c.stats.Discarded++
		c.pending--
	}
}
