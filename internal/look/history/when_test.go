package history

import (
	"testing"
	"time"
)

func TestParseWhen(t *testing.T) {
	zone := time.FixedZone("", 3600)
	now := time.Date(2026, 3, 1, 3, 10, 30, 5, zone)
	for text, want := range map[string]time.Time{
		"0s":                   now,
		"90m":                  now.Add(-90 * time.Minute),
		"03:10":                time.Date(2026, 3, 1, 3, 10, 0, 0, zone),
		"03:11":                time.Date(2026, 2, 28, 3, 11, 0, 0, zone),
		"03:10:31":             time.Date(2026, 2, 28, 3, 10, 31, 0, zone),
		"2026-02-03":           time.Date(2026, 2, 3, 0, 0, 0, 0, zone),
		"2026-02-03 04:05":     time.Date(2026, 2, 3, 4, 5, 0, 0, zone),
		"2026-02-03 04:05:06":  time.Date(2026, 2, 3, 4, 5, 6, 0, zone),
		"2026-02-03T04:05:06Z": time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC),
	} {
		if got, err := ParseWhen("--at", text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "yesterday", "-2h", "25:00", "3"} {
		if got, err := ParseWhen("--at", text, now); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}
