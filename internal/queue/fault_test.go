package queue_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"intumwa/internal/queue"
)

// TestFaultOf: each error of servers and networks has its fault.
func TestFaultOf(t *testing.T) {
	for text, want := range map[string]queue.Fault{
		"OOM command not allowed when used memory > 'maxmemory'. script: f6, on @user_script:51.":      queue.Full,
		"ERR Error running script (call to f_1): @user_script:9: -OOM command not allowed":             queue.Full,
		"NOREPLICAS Not enough good replicas to write.":                                                queue.Unwritable,
		"READONLY You can't write against a read only replica.":                                        queue.Unwritable,
		"MISCONF Redis is configured to save RDB snapshots":                                            queue.Unwritable,
		"LOADING Redis is loading the dataset in memory":                                               queue.Loading,
		"BUSY Redis is busy running a script.":                                                         queue.Loading,
		"CLUSTERDOWN Hash slot not served":                                                             queue.Loading,
		"TRYAGAIN Multiple keys request during rehashing of slot":                                      queue.Loading,
		"ERR Script attempted to access a non local key in a cluster node script: f6":                  queue.Loading,
		"UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)": queue.Unwritable,
		"redis: cluster has no nodes":                                                                  queue.Unreachable,
		"NOPERM this user has no permissions to run the 'xadd' command":                                queue.Forbidden,
		"WRONGPASS invalid username-password pair":                                                     queue.Forbidden,
		"NOAUTH Authentication required.":                                                              queue.Forbidden,
		"ERR Error running script: @user_script:3: -WRONGTYPE Operation against a key":                 queue.WrongType,
		"ERR The stream has exhausted the last possible ID, unable to add more items":                  queue.Garbled,
		"redis: can't parse reply=\"HTTP/1.1 400 Bad Request\" reading \"HTTP/1.1 400 Bad Request\"":   queue.Garbled,
		"ERR max number of clients reached":                                                            queue.Unreachable,
		"EOF":                                                                                          queue.Unreachable,
		"redis: connection pool timeout":                                                               queue.Slow,
	} {
		if got := queue.FaultOf(fmt.Errorf("pushing: %w", errors.New(text))); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
	for err, want := range map[error]queue.Fault{
		context.DeadlineExceeded: queue.Slow,
		&net.OpError{Op: "dial", Err: errors.New("connection refused")}: queue.Unreachable,
		&queue.FaultError{Fault: queue.Lost, Text: "gone"}:              queue.Lost,
	} {
		if got := queue.FaultOf(fmt.Errorf("pushing: %w", err)); got != want {
			t.Errorf("%v is %s, want %s", err, got, want)
		}
	}
	for _, fault := range queue.Faults {
		if queue.FaultOf(&queue.FaultError{Fault: fault}) != fault {
			t.Error(fault)
		}
	}
}

// TestSpoiledLane: whatever a lane's keys contain, the lane works after Empty, at once or after the errors of one more
// push.
func TestSpoiledLane(t *testing.T) {
	t.Parallel()
	for name, command := range map[string][]string{
		"ring overwritten":     {"SET", "ring", "x"},
		"ring of nonsense":     {"ZADD", "ring", "inf", "unknown"},
		"bell overwritten":     {"SET", "bell", "x"},
		"stream overwritten":   {"SET", "stream:1", "x"},
		"ids used up":          {"XADD", "stream:1", "18446744073709551615-18446744073709551615", "m", "1"},
		"an id of next year":   {"XADD", "stream:1", fmt.Sprint(time.Now().AddDate(1, 0, 0).UnixMilli(), "-0"), "m", "1"},
		"emptied, overwritten": {"SET", "emptied", "x"},
	} {
		for _, waiting := range []int{0, 2} {
			t.Run(fmt.Sprint(name, ", waiting ", waiting), func(t *testing.T) {
				t.Parallel()
				q, client, prefix := newQueue(t)
				push(t, q, batchOf(1, 1, waiting))
				args := []any{command[0], prefix + ":queue:{" + carrier + "}:batch:" + command[1]}
				for _, arg := range command[2:] {
					args = append(args, arg)
				}
				do(t, client, args...)
				_ = q.Push(t.Context(), batchOf(1, 5, 1))
				if err := q.Empty(t.Context(), carrier, queue.Batch); err != nil {
					t.Fatal(err)
				}
				push(t, q, batchOf(1, 7, 1))
				if oldest, err := q.Oldest(t.Context(), carrier, queue.Batch); err != nil || oldest > time.Minute {
					t.Errorf("the oldest has waited %v, %v", oldest, err)
				}
				if got, err := q.Take(t.Context(), carrier, queue.Batch, 5, time.Second); err != nil || !slices.Contains(got, 7) {
					t.Errorf("took %v, %v", got, err) // without a ring the stream kept its entries: they are there twice
				}
			})
		}
	}
}

// TestForeignEntries: foreign entries are removed and ours are taken. An entry from the future is an error: it hides
// how long others have waited.
func TestForeignEntries(t *testing.T) {
	t.Parallel()
	q, client, prefix := newQueue(t)
	stream := prefix + ":queue:{" + carrier + "}:batch:stream:1"
	push(t, q, batchOf(1, 1, 1))
	do(t, client, "XADD", stream, "*", "hello", "world")
	do(t, client, "XADD", stream, "*", "m", "99999999999999999999")
	push(t, q, batchOf(1, 2, 1))
	if got := take(t, q, queue.Batch, 5); !slices.Equal(got, []int64{1, 2}) {
		t.Errorf("took %v", got)
	}
	if n := client.Exists(t.Context(), stream).Val(); n != 0 {
		t.Error("the foreign entries are still there")
	}
	do(t, client, "XADD", stream, fmt.Sprint(time.Now().AddDate(1, 0, 0).UnixMilli(), "-0"), "m", "1")
	push(t, q, batchOf(1, 3, 1))
	if _, err := q.Oldest(t.Context(), carrier, queue.Batch); err == nil || queue.FaultOf(err) != queue.WrongType {
		t.Errorf("an entry from the future: %v", err)
	}
}

// TestEmptyOnce: a lane that one process emptied and filled is not emptied again by another for the same fault.
func TestEmptyOnce(t *testing.T) {
	t.Parallel()
	q, client, prefix := newQueue(t)
	other := queue.New(client, queue.Options{Prefix: prefix, Patience: 10 * time.Second})
	for _, each := range []*queue.Queue{q, other} {
		push(t, q, batchOf(1, 1, 1))
		if err := each.Empty(t.Context(), carrier, queue.Batch); err != nil {
			t.Fatal(err)
		}
		for _, key := range client.Keys(t.Context(), prefix+":queue:*:emptied").Val() {
			do(t, client, "PEXPIRE", key, 60_000) // the second may come late
		}
	}
	if got := take(t, q, queue.Batch, 5); !slices.Equal(got, []int64{1}) {
		t.Errorf("took %v", got)
	}
}
