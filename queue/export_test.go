package queue

import "time"

// ForgetAfter sets how long a consumer without pending entries is remembered.
func (b *Belt) ForgetAfter(d time.Duration) { b.forget = d }
