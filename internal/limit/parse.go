package limit

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/weir-io/weir/internal/fault"
)

// A SyntaxError says what is wrong with the spelling of a rate, a size or a count, and how to
// spell it.
type SyntaxError struct {
	What   string // "rate", "size" or "count"
	Input  string
	Reason string
	Hint   string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s %q: %s; %s", e.What, e.Input, e.Reason, e.Hint)
}

// Class makes it fault.WrongUse.
func (e *SyntaxError) Class() fault.Class { return fault.WrongUse }

const (
	bytesHint = "write 10MB/s (powers of 1000), 10MiB/s (powers of 1024), a number of bytes, or max"
	opsHint   = "write 500, 1.5k, or max"
)

// decimal is what a multiplier of powers of 1000 stands for. (As a map it would be made at every
// start of weir; so for other tables of this kind.)
func decimal(unit string) (n uint64, ok bool) {
	switch unit {
	case "":
		return 1, true
	case "k", "K":
		return 1e3, true
	case "m", "M":
		return 1e6, true
	case "g", "G":
		return 1e9, true
	case "t", "T":
		return 1e12, true
	}
	return 0, false
}

// binary is what a multiplier of powers of 1024 stands for.
func binary(unit string) (n uint64, ok bool) {
	switch unit {
	case "Ki":
		return 1 << 10, true
	case "Mi":
		return 1 << 20, true
	case "Gi":
		return 1 << 30, true
	case "Ti":
		return 1 << 40, true
	}
	return 0, false
}

// ParseBytes reads bytes per second: "10MB/s", "10MiB/s", "10M", "1.5GB/s", "500"
// or "max". K, M, G and T are powers of 1000; Ki, Mi, Gi and Ti of 1024. A fraction
// of a byte is cut off. The error is a *SyntaxError.
func ParseBytes(s string) (Rate, error) {
	return parseRate(s, MaxBytesPerSec, bytesHint, func(suffix string) (uint64, string) {
		unit := strings.TrimSuffix(suffix, "/s")
		if countsBits(unit) {
			return 0, fmt.Sprintf("%q is in bits, but weir takes bytes", suffix)
		}
		return multiplier(suffix, strings.TrimSuffix(unit, "B"))
	})
}

// ParseOps reads operations per second: "500", "1.5k", "500/s", "500iops" or "max".
// Its multipliers are powers of 1000. The error is a *SyntaxError.
func ParseOps(s string) (Rate, error) {
	return parseRate(s, MaxOpsPerSec, opsHint, func(suffix string) (uint64, string) {
		unit := strings.ToLower(strings.TrimSuffix(suffix, "/s"))
		unit = strings.TrimSuffix(strings.TrimSuffix(unit, "iops"), "ops")
		if n, ok := decimal(unit); ok {
			return n, ""
		}
		return 0, fmt.Sprintf("unknown suffix %q", suffix)
	})
}

// ParseDockerBytes reads a rate as Docker's --device-read-bps and
// --device-write-bps do: every multiplier is a power of 1024 and case does not
// count ("1mb", "1MB" and "1MiB" are all 1048576).
func ParseDockerBytes(s string) (Rate, error) {
	return parseRate(s, MaxBytesPerSec, "write 1mb, 10m or 512kb (Docker's units: powers of 1024)", func(suffix string) (uint64, string) {
		unit := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(suffix), "b"), "i")
		if n, ok := binary(strings.ToUpper(unit) + "i"); ok {
			return n, ""
		}
		if unit == "" && !strings.HasSuffix(strings.ToLower(suffix), "i") {
			return 1, ""
		}
		return 0, fmt.Sprintf("unknown suffix %q", suffix)
	})
}

// ParseDockerOps reads a rate as Docker's --device-read-iops and --device-write-iops do: a
// plain number.
func ParseDockerOps(s string) (Rate, error) {
	return parseRate(s, MaxOpsPerSec, "write a plain number such as 500", func(suffix string) (uint64, string) {
		if suffix != "" {
			return 0, fmt.Sprintf("unknown suffix %q", suffix)
		}
		return 1, ""
	})
}

// ParseSize reads an amount of memory in bytes: "64MiB", "1G", "1073741824". The error
// is a *SyntaxError.
func ParseSize(s string) (uint64, error) {
	n, reason := parse("size", s, math.MaxInt64, func(suffix string) (uint64, string) {
		return multiplier(suffix, strings.TrimSuffix(suffix, "B"))
	})
	if reason != "" {
		return 0, &SyntaxError{What: "size", Input: s, Reason: reason, Hint: "write 64MiB, 1GB or a number of bytes"}
	}
	return n, nil
}

// ParseCount reads a number of files: "1000", "1.5k", "2M". Its multipliers are powers of
// 1000. The error is a *SyntaxError.
func ParseCount(s string) (uint64, error) {
	n, reason := parse("count", s, math.MaxInt64, func(suffix string) (uint64, string) {
		if n, ok := decimal(suffix); ok {
			return n, ""
		}
		return 0, fmt.Sprintf("unknown suffix %q", suffix)
	})
	if reason != "" {
		return 0, &SyntaxError{What: "count", Input: s, Reason: reason, Hint: "write 1000 or 1.5k"}
	}
	return n, nil
}

func multiplier(suffix, unit string) (uint64, string) {
	if n, ok := decimal(unit); ok {
		return n, ""
	}
	if n, ok := binary(unit); ok {
		return n, ""
	}
	return 0, fmt.Sprintf("unknown suffix %q", suffix)
}

func parseRate(s string, most uint64, hint string, factor func(suffix string) (uint64, string)) (Rate, error) {
	if s == "max" {
		return Unlimited, nil
	}
	n, reason := parse("rate", s, most, factor)
	if reason != "" {
		return Rate{}, &SyntaxError{What: "rate", Input: s, Reason: reason, Hint: hint}
	}
	return PerSecond(n), nil
}

// countsBits finds "bit" in any case, and units such as "Mb", "b" and "Mbps".
func countsBits(unit string) bool {
	return !strings.HasSuffix(unit, "B") &&
		(strings.Contains(strings.ToLower(unit), "bit") || strings.HasSuffix(strings.TrimSuffix(unit, "ps"), "b"))
}

// spelled splits s into an optional sign, digits with at most one point and at least one digit
// after it, an optional space, and an optional suffix. A regexp would have to be compiled at
// every start of weir.
func spelled(s string) (sign, number, suffix string, ok bool) {
	rest := strings.TrimLeft(s, "+-")
	if sign = s[:len(s)-len(rest)]; len(sign) > 1 {
		return "", "", "", false
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end < 0 {
		end = len(rest)
	}
	number, suffix = rest[:end], strings.TrimPrefix(rest[end:], " ")
	_, fraction, point := strings.Cut(number, ".")
	switch {
	case number == "", point && (fraction == "" || strings.Contains(fraction, ".")):
		return "", "", "", false
	case strings.Contains(suffix, " "), suffix != "" && strings.ContainsAny(suffix[:1], "0123456789."):
		return "", "", "", false
	}
	return sign, number, suffix, true
}

// parse reads the number and suffix of a rate, a size or a count. factor returns the suffix's
// multiplier, or why it has none. The number is from 1 to most; otherwise reason says why not.
func parse(what, s string, most uint64, factor func(suffix string) (uint64, string)) (n uint64, reason string) {
	sign, number, suffix, ok := spelled(s)
	if !ok {
		return 0, "not a " + what
	}
	if sign == "-" {
		return 0, "a " + what + " cannot be negative"
	}
	multiple, reason := factor(suffix)
	if reason != "" {
		return 0, reason
	}
	tooLarge := "too large: the maximum is " + strconv.FormatUint(most, 10)
	// Longer numbers than this overflow whatever the suffix; big.Rat need not see them.
	if len(number) > 64 {
		return 0, tooLarge
	}
	value, ok := new(big.Rat).SetString(number)
	if !ok {
		return 0, "not a " + what
	}
	value.Mul(value, new(big.Rat).SetInt(new(big.Int).SetUint64(multiple)))
	whole := new(big.Int).Quo(value.Num(), value.Denom())
	switch {
	case whole.Sign() == 0 && value.Sign() != 0:
		return 0, "a " + what + " must be at least 1"
	case whole.Sign() == 0 && what == "rate":
		return 0, "a rate cannot be zero (the kernel cannot block I/O completely; to remove a limit, write max)"
	case whole.Sign() == 0:
		return 0, "a " + what + " cannot be zero"
	case !whole.IsUint64() || whole.Uint64() > most:
		return 0, tooLarge
	}
	return whole.Uint64(), ""
}
