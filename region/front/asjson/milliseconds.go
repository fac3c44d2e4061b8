package asjson

import (
	"encoding/json"
	"strconv"
	"time"
)

// Milliseconds is a duration as a JSON number of milliseconds with up to three decimals, rounded up
// to a microsecond.
type Milliseconds time.Duration

// MarshalJSON implements json.Marshaler.
func (m Milliseconds) MarshalJSON() ([]byte, error) {
	us := int64(m) / int64(time.Microsecond)
	if m > 0 && int64(m)%int64(time.Microsecond) > 0 {
		us++
	}
	b := strconv.AppendInt(nil, us/1000, 10)
	fraction := us % 1000
	if us < 0 || fraction == 0 {
		return b, nil
	}
	b = append(b, '.')
	for digit := int64(100); fraction > 0; digit /= 10 {
		b = append(b, byte('0'+fraction/digit))
		fraction %= digit
	}
	return b, nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Milliseconds) UnmarshalJSON(b []byte) error {
	var ms float64
	err := json.Unmarshal(b, &ms)
	*m = Milliseconds(ms * float64(time.Millisecond))
	return err
}

// Rounded is the duration in whole milliseconds, for people.
func (m Milliseconds) Rounded() time.Duration { return time.Duration(m).Round(time.Millisecond) }
