package cli

import (
	"math"
	"strconv"
)

// Count writes a number with a space before each three digits: "12 480".
func Count(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// PerSecond writes how many a second there are: "1 248/s", and with a decimal below ten.
func PerSecond(rate float64) string {
	if rate < 9.95 {
		return strconv.FormatFloat(rate, 'f', 1, 64) + "/s"
	}
	return Count(uint64(math.Round(rate))) + "/s"
}

// CountOf is Plural of a number that can be large: "12 480 calls".
func CountOf(n uint64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + many
}
