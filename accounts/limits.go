package accounts

// Limits are the most that a company may send; nil and 0 are no limit.
type Limits struct {
	CreditsADay   *int64 // credits that its sends may take on a day
	RepeatSeconds *int64 // between two sends of a text to a number
	RepeatsADay   *int64 // of a text to a number
	NumberADay    *int64 // messages to a number
}

// limitColumns are the columns of Limits.columns.
const limitColumns = `credits_a_day, repeat_seconds, repeats_a_day, number_a_day`

// columns are the destinations of limitColumns.
func (l *Limits) columns() []any {
	return []any{&l.CreditsADay, &l.RepeatSeconds, &l.RepeatsADay, &l.NumberADay}
}

// LimitChange is another limit, 0 for none; nil changes nothing.
type LimitChange *int64

// Limit returns the change to a limit of n, 0 for none.
func Limit(n int64) LimitChange { return &n }

// LimitsChange is a change of [Limits]; a nil field stays as it is.
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
