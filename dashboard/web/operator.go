package web

// Operator is who runs the installation, at the head of printed statements. Empty fields are left out.
type Operator struct {
	Name, NIF, TradeRegister, Address, Phone, Email string

	BankAccounts, MobileMoney []string // where customers pay
}
