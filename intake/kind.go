package intake

// kind is what a request is, and who pays for it.
type kind uint8

const (
	kindSingle   kind = iota // a live message: the company's balance pays
	kindBulk                 // a batch: the company's balance pays
	kindTemplate             // a batch: the company's balance pays
	kindTest                 // a test message: the account's pool pays
	kindSandbox              // a test message to a number of the sandbox: nobody pays
	kindCode                 // a one-time code of the gateway's own: nobody pays
)

// kinds are their names, in metrics and (of batches) in the database.
var kinds = [...]string{"single", "bulk", "template", "test", "sandbox", "code"}

// String is the kind's name.
func (k kind) String() string { return kinds[k] }
