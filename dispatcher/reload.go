package dispatcher

import (
	"reflect"
)

// equal tells whether two configurations of a link make the same link.
func (l *Link) equal(other *Link) bool {
	a, b := *l, *other
	// Set by the dispatcher, or compared by what they say.
	a.Deliver, b.Deliver, a.OnState, b.OnState, a.Log, b.Log, a.Metrics, b.Metrics = nil, nil, nil, nil, nil, nil, nil, nil
	a.OnCongestion, b.OnCongestion, a.OnLate, b.OnLate, a.Class, b.Class = nil, nil, nil, nil, nil, nil
	if (a.TLS == nil) != (b.TLS == nil) {
		return false
	}
	if a.TLS != nil {
		if a.TLS.ServerName != b.TLS.ServerName || !reflect.DeepEqual(a.TLS.Certificates, b.TLS.Certificates) || !a.TLS.RootCAs.Equal(b.TLS.RootCAs) {
			return false
		}
		a.TLS, b.TLS = nil, nil
	}
	return reflect.DeepEqual(a, b) //nolint:govet // what may hold an error (the log, the TLS files) is out of it by now
}

// LinkChanged obeys at once what an operator wants of a link, after a notice
// that one was paused or resumed; without it the next heartbeat does. It never
// blocks.
func (d *Dispatcher) LinkChanged(string) { d.member.kick() }
