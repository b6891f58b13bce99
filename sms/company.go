package sms

import "strconv"

// CompanyID names a company wherever something is looked up for it. It is a
// type of its own so that a user's or a message's id cannot stand in its place,
// and so that nothing is looked up without saying whose it is. The zero value is
// nobody: it finds nothing, and there is no value that finds everybody's.
type CompanyID int64

// Valid tells whether it can be a company's.
func (c CompanyID) Valid() bool { return c > 0 }

// String is the number.
func (c CompanyID) String() string { return strconv.FormatInt(int64(c), 10) }
