package companies

// LimitChange is another limit, 0 for none; nil changes nothing.
type LimitChange *int64

// Limit returns the change to a limit of n, 0 for none.
func Limit(n int64) LimitChange { return &n }

// LimitsChange is a change of a company's limits; a nil field stays as it is.
type LimitsChange struct {
	CreditsADay, RepeatSeconds, RepeatsADay, NumberADay LimitChange
}

// args returns statement arguments: for each column, whether it changes and its new value.
func (c LimitsChange) args() (args []any) {
	for _, change := range []LimitChange{c.CreditsADay, c.RepeatSeconds, c.RepeatsADay, c.NumberADay} {
		args = append(args, change != nil, (*int64)(change))
	}
	return args
}
