package history

import (
	"time"

	"github.com/weir-io/weir/internal/fault"
)

// ParseWhen reads a time of the past: how long ago it was ("2h", "90s"), a time of the day, which
// is the last one that has been ("03:10", "03:10:05"), or a day with a time ("2026-11-26 03:10",
// RFC 3339). flag names it in errors.
func ParseWhen(flag, text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		t, err := time.ParseInLocation(layout, text, now.Location())
		if err != nil {
			continue
		}
		day := time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), t.Second(), 0, now.Location())
		if day.After(now) {
			day = day.AddDate(0, 0, -1)
		}
		return day, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fault.Misusef("%s %q: write how long ago (2h), a time (03:10), or a day and a time (2026-11-26 03:10)", flag, text)
}
