package messages

// IDAt is the statement that looks for the messages of a time.
const IDAt = idAt

// WalkStatement is the statement of [Store.Walk] with its arguments, behind
// WalkSettings.
var (
	WalkStatement = walk
	WalkSettings  = byIndex
)

// ClaimStatement is the statement of [Store.Claim]; ClaimAsks and ClaimHolds are what
// it looks up of opt-outs and of approvals.
var (
	ClaimStatement = claimStatement
	ClaimAsks      = claimAsks
	ClaimHolds     = claimHolds
)
