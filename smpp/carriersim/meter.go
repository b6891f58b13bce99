package carriersim

import "time"

// acceptMeter keeps the times of the last accepted submits, as many as may come
// in one second, so that any second, wherever it begins, has no more.
type acceptMeter struct {
	times []int64
	next  int
}

// full tells whether one more now would be one too many.
func (m *acceptMeter) full(now int64) bool {
	return len(m.times) > 0 && m.times[m.next] != 0 && now-m.times[m.next] < int64(time.Second)
}

func (m *acceptMeter) add(now int64) {
	if len(m.times) > 0 {
		m.times[m.next] = now
		m.next = (m.next + 1) % len(m.times)
	}
}

// rateMeter knows the most that came within one second, in steps of 100 ms.
type rateMeter struct {
	tenths [10]int
	at     int64 // the tenth that counts now
	sum    int
	peak   int
}

func (m *rateMeter) add(now int64) {
	tenth := now / int64(100*time.Millisecond)
	for ; m.at < tenth && m.sum > 0; m.at++ {
		slot := &m.tenths[(m.at+1)%10]
		m.sum -= *slot
		*slot = 0
	}
	m.at = tenth
	m.tenths[tenth%10]++
	m.sum++
	m.peak = max(m.peak, m.sum)
}
