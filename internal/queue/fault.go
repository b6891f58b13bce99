package queue

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Fault classifies an error of the queue: a label of metrics and of the log.
type Fault string

const (
	Unreachable Fault = "unreachable" // no connection, or it broke
	Slow        Fault = "slow"        // no answer in time
	Full        Fault = "full"        // OOM: its memory is used up
	Unwritable  Fault = "unwritable"  // a replica, too few replicas, or it cannot save
	// it reads its data, a script keeps it busy, or its cluster is not whole or moves our slot
	Loading   Fault = "loading"
	Forbidden Fault = "forbidden"  // the user or the password, or what the user may do
	WrongType Fault = "wrong_type" // one of our keys has another type
	Garbled   Fault = "garbled"    // not a response of Redis, or an unknown error
	Lost      Fault = "lost"       // what was written is gone
)

// Faults are all of them.
var Faults = []Fault{Unreachable, Slow, Full, Unwritable, Loading, Forbidden, WrongType, Garbled, Lost}

// FaultError is an error with a known fault.
type FaultError struct {
	Fault Fault
	Text  string
}

func (e *FaultError) Error() string { return e.Text }

// faultWords are words in servers' errors. The error of a command inside a script may be in the middle of the text.
var faultWords = []struct {
	word  string
	fault Fault
}{
	{"OOM ", Full},
	{"READONLY", Unwritable}, {"NOREPLICAS", Unwritable}, {"MISCONF", Unwritable}, {"MASTERDOWN", Unwritable},
	{"UNBLOCKED ", Unwritable}, // a master became a replica
	{"LOADING", Loading}, {"BUSY ", Loading}, {"CLUSTERDOWN", Loading}, {"TRYAGAIN", Loading}, {"MOVED ", Loading},
	{"non local key", Loading}, // one of our keys has moved to another node
	{"NOPERM", Forbidden}, {"NOAUTH", Forbidden}, {"WRONGPASS", Forbidden}, {"The user executing the script", Forbidden},
	{"WRONGTYPE", WrongType},
	{"max number of clients", Unreachable}, {"cluster has no nodes", Unreachable},
}

// FaultOf classifies an error of a queue's method.
func FaultOf(err error) Fault {
	if known, ok := errors.AsType[*FaultError](err); ok {
		return known.Fault
	}
	text := err.Error()
	for _, f := range faultWords {
		if strings.Contains(text, f.word) {
			return f.fault
		}
	}
	if _, moving := redis.IsAskError(err); moving {
		return Loading
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return Slow
	}
	if network, ok := errors.AsType[net.Error](err); ok {
		if network.Timeout() {
			return Slow
		}
		return Unreachable
	}
	switch {
	case strings.Contains(text, "pool timeout"):
		return Slow
	case strings.Contains(text, "EOF"), strings.Contains(text, "client is closed"),
		strings.Contains(text, "master is down"):
		return Unreachable
	}
	return Garbled
}
