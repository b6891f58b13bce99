package accounts

// Limits are the most that a company may send; nil and 0 are no limit.
type Limits struct {
	CreditsADay   *int64 // credits that its sends may take on a day
	RepeatSeconds *int64 // between two sends of a text to a number
	RepeatsADay   *int64 // of a text to a number
	NumberADay    *int64 // messages to a number
}

// LimitColumns are the columns of Limits.Columns.
const LimitColumns = `credits_a_day, repeat_seconds, repeats_a_day, number_a_day`

// Columns are the destinations of LimitColumns.
func (l *Limits) Columns() []any {
	return []any{&l.CreditsADay, &l.RepeatSeconds, &l.RepeatsADay, &l.NumberADay}
}
