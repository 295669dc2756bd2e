package cli

import (
	"fmt"
	"strings"
	"time"
)

// Duration writes a time as a person says it: "350 ms", "5.2 s", "2 min 1 s", "3 h 20 min".
func Duration(d time.Duration) string {
	switch {
	case d.Round(time.Millisecond) < time.Second:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	case d.Round(100*time.Millisecond) < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d.Round(time.Second) < time.Hour:
		s := int(d.Round(time.Second).Seconds())
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	default:
		m := int(d.Round(time.Minute).Minutes())
		return fmt.Sprintf("%d h %d min", m/60, m%60)
	}
}

// FlagTime writes a time as flags take it, without Go's zeros behind it: "10m", "1h", "1m30s".
func FlagTime(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-len("0s")]
		}
	}
	return text
}

// Latency writes the time of one operation with two digits or three: "0.9 µs", "31 µs",
// "9.1 ms", "350 ms", and longer ones as Duration does.
func Latency(d time.Duration) string {
	us := float64(d) / float64(time.Microsecond)
	switch {
	case d == 0:
		return "0 µs"
	case us < 9.95:
		return fmt.Sprintf("%.1f µs", us)
	case us < 999.5:
		return fmt.Sprintf("%.0f µs", us)
	case us < 9950:
		return fmt.Sprintf("%.1f ms", us/1e3)
	}
	return Duration(d)
}
