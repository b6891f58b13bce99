package messages

// IDAt is the statement that finds the messages of a time.
const IDAt = idAt

// WalkStatement is the statement of [Store.Walk] with its arguments, to run after WalkSettings.
var (
	WalkStatement = walk
	WalkSettings  = byIndex
)

// ClaimStatements are the statements of [Store.Claim].
var ClaimStatements = []string{claimPlain, claimOther}
