package sms

// Refusal is a business rule that forbids a send (rule api 7.2). It is the one
// kind of error whose text is meant for the customer: it is answered with HTTP
// 400, word for word. Found with errors.As.
type Refusal struct {
	Reason string // which rule, as metrics name it: from a closed set
	Text   string // for the customer
}

// Error is the text for the customer.
func (r Refusal) Error() string { return r.Text }
