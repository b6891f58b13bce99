package accounts

import "strconv"

// ForgetUser drops from memory what is known of a user's tokens, after a notice that the account was changed; of
// everybody's with a key that is no user id. What is asked from now on, Postgres answers.
func (a *Accounts) ForgetUser(key string) {
	id, err := strconv.ParseInt(key, 10, 64)
	if err != nil {
		a.cache.forgetAll()
		return
	}
	a.cache.forgetWhere(func(_ int64, p *Principal) bool { return p.UserID == id })
}

// ForgetCompany is [Accounts.ForgetUser] for the tokens of a company's owner, by the company's id.
func (a *Accounts) ForgetCompany(key string) {
	id, err := strconv.ParseInt(key, 10, 64)
	if err != nil {
		a.cache.forgetAll()
		return
	}
	a.cache.forgetWhere(func(_ int64, p *Principal) bool { return p.Company != nil && p.Company.ID == id })
}
