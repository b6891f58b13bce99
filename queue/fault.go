package queue

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Fault is what is wrong with the queue, in few words: a label of metrics and of
// the log.
type Fault string

const (
	Unreachable Fault = "unreachable" // no connection, or it broke
	Slow        Fault = "slow"        // no answer in time
	Full        Fault = "full"        // OOM: its memory is used up
	Unwritable  Fault = "unwritable"  // a replica, too few replicas, or it cannot save
	Loading     Fault = "loading"     // it reads its data, a script keeps it busy, or its cluster is not whole or moves our slot
	Forbidden   Fault = "forbidden"   // the user or the password, or what the user may do
	WrongType   Fault = "wrong_type"  // one of our keys holds something else
	Garbled     Fault = "garbled"     // not an answer of Redis, or an unknown error
	Lost        Fault = "lost"        // what it was given is not there any more
)

// Faults are all there are.
var Faults = []Fault{Unreachable, Slow, Full, Unwritable, Loading, Forbidden, WrongType, Garbled, Lost}

// FaultError is an error of which the fault is known already.
type FaultError struct {
	Fault Fault
	Text  string
}

func (e *FaultError) Error() string { return e.Text }

// faultWords are what servers write into their errors. What a command inside a
// script met may stand in the middle of the text.
var faultWords = []struct {
	word  string
	fault Fault
}{
	{"OOM ", Full},
	{"READONLY", Unwritable}, {"NOREPLICAS", Unwritable}, {"MISCONF", Unwritable}, {"MASTERDOWN", Unwritable},
	{"UNBLOCKED ", Unwritable}, // it was a master, and is a replica now
	{"LOADING", Loading}, {"BUSY ", Loading}, {"CLUSTERDOWN", Loading}, {"TRYAGAIN", Loading}, {"MOVED ", Loading},
	{"non local key", Loading}, // a key of ours has gone to another node already
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
	if _, asked := redis.IsAskError(err); asked {
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
	case strings.Contains(text, "EOF"), strings.Contains(text, "client is closed"), strings.Contains(text, "master is down"):
		return Unreachable
	}
	return Garbled
}
