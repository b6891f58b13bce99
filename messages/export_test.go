package messages

// IDAt is the statement that looks for the messages of a time.
const IDAt = idAt

// WalkStatement is the statement of [Store.Walk], WalkArguments its arguments.
var (
	WalkStatement = walk
	WalkArguments = walkArguments
	WalkSettings  = byIndex
)
