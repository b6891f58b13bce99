package intake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"intumwa/internal/throttle"
	"intumwa/messages"
	"intumwa/sms"
	"intumwa/verifications"
	"intumwa/webhooks"
)

// Errors that are neither a refusal nor a fault.
var (
	// ErrUnavailable: the database is unreachable or did not respond. The request is not accepted and nothing was
	// charged, unless the error is also ErrOutcomeUnknown; the client may try again (503).
	ErrUnavailable = errors.New("the database is unreachable")
	// ErrOutcomeUnknown is an ErrUnavailable of a request that may have been accepted and charged: its COMMIT got no
	// response, and its outcome cannot be found now.
	ErrOutcomeUnknown = fmt.Errorf("%w: the outcome of the request is unknown", ErrUnavailable)
	// ErrKeyInUse: the first request with this idempotency key is in progress (409).
	ErrKeyInUse = errors.New("a request with this idempotency key is still being processed")
	// ErrKeyReused: the idempotency key belongs to another request (422).
	ErrKeyReused = errors.New("the idempotency key was already used with a different request")
)

// Options configures an Intake.
type Options struct {
	Validity    time.Duration     // of a message, default 24 h
	MaxSegments int               // of a message, default 255
	TestSender  string            // rule api 4.4.2
	TestQuota   int               // segments an account, rule api 4.4.5
	SandboxADay int               // messages to sandbox numbers a user and day, default 1,000
	Repeats     *throttle.Repeats // counters for companies' limits on repeats; nil: these limits do not apply
	QuietHours  sms.QuietHours    // of companies without their own
	KeyLife     time.Duration     // how long an idempotency key is remembered (rule choices 1.10), default 24 h
	Log         *slog.Logger

	// Of verifications; without them Verify must not be called.
	Verifications    *verifications.Store
	VerificationRate *throttle.Throttle // messages a company and hour
	// records what endpoints get (webhooks.Webhooks.Enqueue)
	Events func(ctx context.Context, tx pgx.Tx, e []webhooks.Event) error

	Metrics prometheus.Registerer
}

// core is what the parts of an Intake share. It knows none of them.
type core struct {
	opts     Options
	pool     *pgxpool.Pool
	messages *messages.Store
	metrics  *metrics
	turns    chan struct{} // of transactions of verifications
}
