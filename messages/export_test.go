package messages

// IDAt is the statement that looks for the messages of a time.
const IDAt = idAt
